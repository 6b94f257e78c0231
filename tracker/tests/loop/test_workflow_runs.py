"""Our own workflow played for each event: who measures, who judges, who may write, what is said."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracker.loop.init import WORKFLOW as WRITTEN
from tracker.loop.init import Wishes, workflow
from tracker.loop.source import Source
from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project, recorded
from tracker.tests.loop.actions import Event, GitHub, Job
from tracker.tests.loop.api import Api, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
WORKFLOW = "gpu-bench.yml"
FORK = "stranger/kernels"


@dataclass
class Team:
    """A repository on GitHub with its runner, its store and its comments."""

    github: GitHub
    api: Api
    origin: Path
    store: str

    def push(self, speeds: Mapping[str, float], message: str = "Change") -> Event:
        """Commit on main; return the event of the push."""
        sha = fake.commit(self.origin, message, {fake.SPEEDS: json.dumps(speeds)})
        return Event("push", sha, "refs/heads/main", {"ref": "refs/heads/main", "after": sha})

    def pull(
        self,
        speeds: Mapping[str, float],
        *,
        number: int = 7,
        branch: str = "faster",
        label: str | None = "bench",
        action: str = "labeled",
        fork: bool = False,
        files: Mapping[str, str] | None = None,
        message: str = "Try something",
    ) -> Event:
        """Push a branch on top of main; return the event of its pull request."""
        base = fake.git(self.origin, "rev-parse", "main")
        fake.git(self.origin, "switch", "--quiet", "--force-create", "work", "main")
        head = fake.commit(self.origin, message, {fake.SPEEDS: json.dumps(speeds), **(files or {})})
        fake.git(self.origin, "switch", "--quiet", "main")
        fake.git(self.origin, "update-ref", f"refs/heads/{branch}", head)
        fake.git(self.origin, "branch", "--quiet", "-D", "work")
        merge = fake.git(
            self.origin, "commit-tree", f"{head}^{{tree}}", "-p", base, "-p", head, "-m", "Merge"
        )
        fake.git(self.origin, "update-ref", f"refs/pull/{number}/merge", merge)
        payload: dict[str, Any] = {
            "action": action,
            "number": number,
            "pull_request": {
                "number": number,
                "title": message,
                "labels": [{"name": label}] if label else [],
                "head": {
                    "sha": head,
                    "ref": branch,
                    "repo": {"full_name": FORK if fork else self.github.repository},
                },
                "base": {"sha": base, "ref": "main"},
            },
        }
        if action == "labeled":
            payload["label"] = {"name": label}
        return Event("pull_request", merge, f"refs/pull/{number}/merge", payload)

    def run(self, event: Event, **options: int) -> dict[str, Job]:
        return self.github.run(WORKFLOW, event, **options)

    def stored(self) -> list[str | None]:
        with Store.open(self.store, read_only=True) as store:
            return [run.sha for run in runs(store)]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    origin = tmp_path / "origin"
    project.make(origin)
    fake.git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    for name in ("workflows", "actions", "constraints.txt", "requirements-gpu.txt"):
        source, target = ROOT / ".github" / name, origin / ".github" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    fake.commit(origin, "Add the workflows", {})
    tools = tmp_path / "tools"
    tools.mkdir()
    command = f'#!/bin/sh\nexec {sys.executable} -m tracker.tests.loop.measuring "$@"\n'
    (tools / "bandwatch").write_text(command.replace("exec ", f"PYTHONPATH={ROOT} exec "))
    (tools / "bandwatch").chmod(0o755)

    def install(workspace: Path) -> None:
        folder = workspace / ".venv/bin"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(tools / "bandwatch", folder / "bandwatch")

    store = f"sqlite:///{tmp_path / 'team.db'}"
    with serving() as api:
        github = GitHub(
            origin,
            tmp_path / "github",
            install,
            api=api.address,
            path=tools,
            secrets={
                name: {"BANDWATCH_STORE": store} for name in ("gpu-bench", "gpu-bench-review")
            },
        )
        yield Team(github, api, origin, store)


EVEN = {"relu": 1.0, "add": 1.0}
SLOW = {"relu": 1.1, "add": 1.0}


def results(jobs: Mapping[str, Job]) -> dict[str, str]:
    return {name: job.result for name, job in jobs.items()}


def test_pushes_to_main_are_measured_recorded_and_judged(team: Team) -> None:
    first = team.push(EVEN)
    jobs = team.run(first)
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "skipped"}, jobs[
        "bench"
    ].log
    assert jobs["bench"].environment == "gpu-bench"
    assert jobs["judge"].outputs["verdict"] == "no baseline"
    second = team.push(EVEN)
    assert team.run(second)["judge"].outputs["verdict"] == "ok"
    assert team.stored() == [second.sha, first.sha]
    slow = team.push(SLOW)
    jobs = team.run(slow)
    # Measuring succeeds and keeps its records; the verdict fails the job that judges.
    assert results(jobs) == {"bench": "success", "judge": "failure", "comment": "skipped"}
    assert jobs["judge"].outputs["verdict"] == "regression"
    assert "::error " in jobs["judge"].log
    assert team.api.calls == []


def test_a_labelled_branch_is_judged_in_turns_and_gets_one_comment(team: Team) -> None:
    team.run(team.push(EVEN))
    before = team.stored()
    jobs = team.run(team.pull(SLOW))
    assert results(jobs) == {"bench": "success", "judge": "failure", "comment": "success"}
    assert jobs["bench"].environment == "gpu-bench-review"
    (comment,) = team.api.of(7)
    assert "slower" in comment
    assert "measured in turns with" in comment
    jobs = team.run(team.pull(EVEN, action="synchronize"))
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "success"}
    (comment,) = team.api.of(7)
    assert "slower" not in comment
    # What nobody has merged is not written into the team's store.
    assert team.stored() == before


def test_recorded_runs_of_an_h200_go_through_the_same_jobs(team: Team) -> None:
    clean, planted = ({recorded.STATE: state} for state in (recorded.CLEAN, recorded.PLANTED))
    for verdict in ("no baseline", "ok"):
        fake.commit(team.origin, "Go on", clean)
        jobs = team.run(team.push(EVEN))
        assert results(jobs)["judge"] == "success", jobs["judge"].log
        assert jobs["judge"].outputs["verdict"] == verdict
    jobs = team.run(team.pull(EVEN, files=planted))
    assert results(jobs) == {"bench": "success", "judge": "failure", "comment": "success"}
    (comment,) = team.api.of(7)
    assert "**3 regressions" in comment
    assert "of 209 cases: exit 1**" in comment
    slower = [line for line in comment.splitlines() if "**\u25b2 slower**" in line]
    assert len(slower) == 3
    assert all("`relu/cuda_vector float" in row or "`relu/cuda_vector bf" in row for row in slower)
    assert "on NVIDIA H200, driver 580" in comment
    assert "conditions: " in comment
    assert "SM clock" in comment
    assert jobs["judge"].log.count("::error file=kernels/relu/cuda.cu,line=") == 3
    jobs = team.run(team.pull(EVEN, files=clean, action="synchronize"))
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "success"}
    (comment,) = team.api.of(7)
    assert "slower" not in comment
    assert "hidden: " in comment


def test_a_fork_s_pull_request_never_reaches_the_runner(team: Team) -> None:
    jobs = team.run(team.pull(SLOW, fork=True))
    assert results(jobs) == {"bench": "skipped", "judge": "skipped", "comment": "skipped"}
    assert team.api.calls == []


@pytest.mark.parametrize(
    ("label", "action"), [(None, "synchronize"), ("docs", "labeled"), (None, "reopened")]
)
def test_without_the_label_nothing_is_measured(team: Team, label: str | None, action: str) -> None:
    jobs = team.run(team.pull(SLOW, label=label, action=action))
    assert set(results(jobs).values()) == {"skipped"}


def test_only_a_newer_push_of_the_same_pull_request_cancels(team: Team) -> None:
    bench = team.pull(EVEN)
    push = team.push(EVEN)
    other = team.pull(EVEN, label="bench", action="labeled")
    other.payload["label"] = {"name": "docs"}
    groups = [
        team.github.group(WORKFLOW, event)
        for event in (bench, team.pull(EVEN, action="synchronize"), other, push, push)
    ]
    assert groups[0] == groups[1] == ("gpu-bench-7", True)
    # Another label, and each run on main, are alone in their group.
    assert len({group for group, _ in groups}) == 4


def test_the_nightly_run_is_recorded(team: Team) -> None:
    push = team.push(EVEN)
    jobs = team.run(Event("schedule", push.sha, "refs/heads/main"))
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "skipped"}
    assert team.stored() == [push.sha]


def test_a_reviewed_fork_runs_from_a_branch_of_ours_without_writing(team: Team) -> None:
    team.run(team.push(EVEN))
    change = team.pull(SLOW, fork=True)
    sha = change.payload["pull_request"]["head"]["sha"]
    jobs = team.run(Event("push", sha, "refs/heads/pull-request/7"))
    assert results(jobs) == {"bench": "success", "judge": "failure", "comment": "skipped"}
    assert jobs["bench"].environment == "gpu-bench-review"
    assert sha not in team.stored()


def test_a_re_run_measures_anew_and_keeps_both(team: Team) -> None:
    push = team.push(EVEN)
    assert team.run(push)["bench"].outputs["artifact"].endswith("-1-1")
    again = team.run(push, attempt=2)
    assert again["bench"].outputs["artifact"].endswith("-1-2")
    assert results(again)["judge"] == "success"
    assert team.stored() == [push.sha, push.sha]


def test_a_pull_request_cannot_loosen_the_thresholds_that_judge_it(team: Team) -> None:
    loose = (
        '[tool.bandwatch]\nsuite = ["perf"]\n[tool.bandwatch.thresholds]\nminimal_effect = 0.9\n'
    )
    jobs = team.run(team.pull(SLOW, files={"pyproject.toml": loose}))
    assert "regression" not in jobs["bench"].log
    assert jobs["judge"].outputs["verdict"] == "regression"
    assert "slower" in team.api.of(7)[0]


def test_a_pull_request_cannot_bring_its_own_judge(team: Team) -> None:
    action = (ROOT / ".github/actions/bandwatch/action.yml").read_text("utf-8")
    mild = action.replace("default: 1 2 3 4 5", "default: 99")
    assert mild != action
    jobs = team.run(team.pull(SLOW, files={".github/actions/bandwatch/action.yml": mild}))
    assert jobs["judge"].result == "failure"


HOSTILE = "x$(touch${IFS}pwned)`id`"


def test_hostile_names_are_text_everywhere(team: Team, tmp_path: Path) -> None:
    message = "::error::x ![i](https://evil.example/i.png) @someone <img src=x> $(touch pwned)"
    jobs = team.run(team.pull(SLOW, branch=HOSTILE, message=message))
    assert results(jobs)["comment"] == "success", jobs["judge"].log
    assert list(tmp_path.rglob("pwned")) == []
    (comment,) = team.api.of(7)
    assert "](https://evil" not in comment
    assert "<img" not in comment
    assert "@someone" not in comment


def test_a_job_that_dies_is_nothing_measured_and_says_so(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = team.pull(EVEN)
    whole = team.github.install

    def broken(workspace: Path) -> None:
        whole(workspace)
        (workspace / ".venv/bin/bandwatch").write_text("#!/bin/sh\nexit 9\n")

    team.github.install = broken
    jobs = team.run(event)
    assert jobs["bench"].outputs["artifact"] == ""
    assert jobs["judge"].result == "failure"
    assert "nothing was measured" in team.api.of(7)[0]


def test_the_lock_that_others_on_the_host_agreed_on_is_taken(team: Team) -> None:
    team.github.variables["GPU_LOCK"] = str(team.origin / "no such folder/lock")
    jobs = team.run(team.push(EVEN))
    assert results(jobs)["judge"] == "failure"
    assert "cannot open the lock" in jobs["bench"].log
    assert "exit 4" in jobs["judge"].log


@pytest.mark.parametrize("status", [403, 404, 409, 500])
def test_a_comment_that_is_refused_changes_no_verdict(team: Team, status: int) -> None:
    team.api.refuses = status
    jobs = team.run(team.pull(EVEN))
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "failure"}
    team.api.refuses = None
    again = team.run(team.pull(EVEN, action="synchronize"))
    assert results(again)["comment"] == "success"
    assert len(team.api.of(7)) == 1


def test_a_pull_request_cannot_write_its_own_comment(team: Team) -> None:
    action = (ROOT / ".github/actions/bandwatch/action.yml").read_text("utf-8")
    # Keeps a report of its own under the name that the job which judges will want.
    step = (
        "    - shell: bash\n"
        "      name: Write\n"
        "      run: mkdir -p forged && echo 'All is well, says @someone' >forged/comment.md\n"
        "    - uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1\n"
        "      with:\n"
        "        name: bandwatch-report-1-1\n"
        "        path: forged\n"
    )
    files = {".github/actions/bandwatch/action.yml": action + step}
    jobs = team.run(team.pull(SLOW, files=files))
    assert (team.github.folder / "artifacts/bandwatch-report-1-1/comment.md").is_file()
    assert jobs["judge"].result == "failure"
    assert jobs["judge"].outputs["verdict"] == "regression"
    assert not [text for text in team.api.of(7) if "All is well" in text]
    assert results(jobs)["comment"] == "skipped"


def test_only_the_commenting_job_may_write(team: Team) -> None:
    jobs = team.run(team.pull(EVEN))
    writers = {name for name, job in jobs.items() if "write" in job.permissions.values()}
    assert writers == {"comment"}


def test_the_step_summary_and_the_records_are_kept(team: Team) -> None:
    team.run(team.push(EVEN))
    kept = team.github.folder / "artifacts"
    names = sorted(path.name for path in kept.iterdir())
    assert names == ["bandwatch-records-1-1", "bandwatch-report-1-1"]
    assert (kept / "bandwatch-records-1-1/head-0.json").is_file()
    assert {p.name for p in (kept / "bandwatch-report-1-1").iterdir()} == {
        *("comment.md", "junit.xml", "report.html", "report.json"),
    }
    summary = (team.github.folder / "run-1-1/summary-judge.md").read_text()
    assert "### Benchmarks\n" in summary


def test_what_init_writes_lets_cases_go_where_a_maintainer_s_label_says_so(team: Team) -> None:
    source = Source("https://git.example.org/acme/bandwatch", "0123456789" * 4)
    name = Path(WRITTEN).name
    fake.commit(team.origin, "Add theirs", {WRITTEN: workflow(Wishes(), source)})
    jobs = team.github.run(name, team.push(EVEN))
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "skipped"}, jobs[
        "bench"
    ].log
    dropped = team.pull({"relu": 1.0})
    jobs = team.github.run(name, dropped)
    assert results(jobs) == {"bench": "success", "judge": "failure", "comment": "success"}
    assert "bandwatch triage waive PATTERN" in team.api.of(7)[0]
    dropped.payload["pull_request"]["labels"].append({"name": "cases-removed"})
    jobs = team.github.run(name, dropped)
    assert results(jobs) == {"bench": "success", "judge": "success", "comment": "success"}
    assert "let pass by --allow-vanished" in team.api.of(7)[0]
