"""Each command on a store with a known history."""

import csv
import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from tracker.model import Run
from tracker.occasion import AS_BASE
from tracker.record import dump_run
from tracker.report import report_schema
from tracker.store import Store
from tracker.tests.cli.conftest import Command, run_of_commit
from tracker.tests.cli.test_check import another, keep
from tracker.tests.factory import make_commit, sha


def rows(text: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["tables"][table]
    return found


def write(folder: Path, run: Run, name: str = "x.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(dump_run(run)))
    return path


@pytest.mark.usefixtures("filled")
def test_check_judges_the_newest_run_and_fails_on_a_regression(bandwatch: Command) -> None:
    answer = bandwatch("check")
    assert answer.code == 1
    assert "run-of-commit-4" in answer.out
    assert "▲ slower" in answer.out
    assert "1 regression, 2 no change of 3 cases: exit 1" in answer.out
    assert answer.err == ""


@pytest.mark.usefixtures("filled")
def test_check_judges_a_named_run(bandwatch: Command) -> None:
    for name in ("run-of-commit-3", sha(3), sha(3)[:-1] + "3"):
        answer = bandwatch("check", name)
        assert answer.code == 0
        assert "3 no change of 3 cases: exit 0" in answer.out


@pytest.mark.usefixtures("filled")
def test_the_first_run_has_no_baseline_and_passes(bandwatch: Command) -> None:
    answer = bandwatch("check", "run-of-commit-1")
    assert answer.code == 0
    assert "3 no baseline of 3 cases: exit 0" in answer.out


@pytest.mark.usefixtures("filled")
def test_every_format_has_the_same_exit_code(bandwatch: Command) -> None:
    for form in ("text", "json", "csv", "markdown", "github"):
        assert bandwatch("check", "--format", form).code == 1


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["compare", "run-of-commit-1"],
        ["history", "relu"],
        ["show", "relu"],
        ["list"],
        ["list", "--cases"],
        ["record", "run.json"],
        ["doctor"],
    ],
)
def test_json_of_every_command_has_the_documented_shape(
    bandwatch: Command, command: list[str]
) -> None:
    answer = bandwatch(*command, "--format", "json")
    data = json.loads(answer.out)
    fastjsonschema.compile(report_schema())(data)
    assert data["exit_code"] == answer.code


@pytest.mark.usefixtures("filled")
def test_json_of_a_regression_says_how_much(bandwatch: Command) -> None:
    first = rows(bandwatch("check", "--format", "json").out, "verdicts")[0]
    assert first["kernel"] == "relu"
    assert first["outcome"] == "regression"
    assert first["bandwidth_change"] == pytest.approx(1 / 1.2 - 1, abs=0.005)
    assert first["bandwidth_change_low"] < first["bandwidth_change"] < 0


@pytest.mark.usefixtures("filled")
def test_compare_judges_any_two_runs(bandwatch: Command) -> None:
    worse = bandwatch("compare", "run-of-commit-1", "run-of-commit-4")
    better = bandwatch("compare", "run-of-commit-4", "run-of-commit-1")
    assert (worse.code, better.code) == (1, 0)
    assert "▼ faster" in better.out


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["main", "latest"])
def test_compare_with_the_branch_of_the_newest_run_takes_the_run_before(
    bandwatch: Command, name: str
) -> None:
    answer = bandwatch("compare", name, "--format", "json")
    facts = json.loads(answer.out)["facts"]
    assert (facts["base_run"], facts["run"]) == ("run-of-commit-3", "run-of-commit-4")
    assert answer.code == 1
    told = f"the newest run of {name} is B itself, so A is the run before it"
    assert json.loads(answer.out)["notes"] == [told]
    other = bandwatch("compare", name, "run-of-commit-2", "--format", "json")
    assert json.loads(other.out)["facts"]["base_run"] == "run-of-commit-4"
    assert json.loads(other.out)["notes"] == []


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["run-of-commit-4", sha(4)])
def test_compare_of_a_run_with_itself_is_refused(bandwatch: Command, name: str) -> None:
    answer = bandwatch("compare", name)
    assert answer.code == 2
    assert f"cannot compare run run-of-commit-4 with itself: '{name}'" in answer.err


def test_compare_with_the_same_commit_takes_its_run_before(
    filled: Path, bandwatch: Command
) -> None:
    again = replace(run_of_commit(4), run_id="once-more", finished_at=None)
    again = replace(again, started_at="2026-12-24T10:00:00+00:00")
    assert bandwatch("record", str(write(filled, again))).code == 0
    answer = bandwatch("compare", sha(4), "--format", "json")
    facts = json.loads(answer.out)["facts"]
    assert (facts["base_run"], facts["run"]) == ("run-of-commit-4", "once-more")


@pytest.mark.usefixtures("filled")
def test_compare_takes_branches_and_commits(bandwatch: Command) -> None:
    answer = bandwatch("compare", sha(2), "main", "--format", "json")
    facts = json.loads(answer.out)["facts"]
    assert (facts["run"], facts["base_run"]) == ("run-of-commit-4", "run-of-commit-2")


@pytest.mark.usefixtures("filled")
def test_history_shows_one_case_in_commit_order(bandwatch: Command) -> None:
    answer = bandwatch("history", "relu", "--format", "json")
    found = rows(answer.out, "history")
    assert [row["commit"] for row in found] == [sha(n) for n in (1, 2, 3, 4)]
    assert found[0]["bandwidth_change"] is None
    assert found[3]["bandwidth_change"] == pytest.approx(1 / 1.2 - 1, abs=0.005)
    assert found[3]["subject"] == "Change 4"


@pytest.mark.usefixtures("filled")
def test_history_names_the_cases_when_several_fit(bandwatch: Command) -> None:
    answer = bandwatch("history", "add")
    assert answer.code == 2
    assert "add/torch" in answer.err
    assert "add/cuda_vector" in answer.err


@pytest.mark.usefixtures("filled")
def test_list_shows_runs_newest_first(bandwatch: Command) -> None:
    answer = bandwatch("list", "--limit", "2", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(answer.out)))
    assert [row["run"] for row in found] == ["run-of-commit-4", "run-of-commit-3"]
    assert "2 of 4 runs" in bandwatch("list", "--limit", "2").out


@pytest.mark.parametrize("width", ["60", "80", "100"])
def test_a_run_id_is_never_broken_over_lines(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    run = run_of_commit(1)
    branch = "feature/a-branch-with-a-name-that-is-longer-than-it-need-be"
    run = replace(run, run_id="0" * 31 + "f", checkout=replace(run.checkout, branch=branch))
    recorded = bandwatch("record", str(write(project, run)))
    assert run.run_id in recorded.out
    assert run.run_id in bandwatch("list").out


@pytest.mark.usefixtures("filled")
def test_list_shows_cases(bandwatch: Command) -> None:
    found = rows(bandwatch("list", "--cases", "--format", "json").out, "cases")
    assert {row["case"].split()[0] for row in found} == {
        "relu/cuda_vector",
        "add/cuda_vector",
        "add/torch",
    }


def test_record_takes_a_run_once(project: Path, bandwatch: Command) -> None:
    path = write(project, run_of_commit(1))
    assert "recorded 1 of 1 run" in bandwatch("record", str(path)).out
    again = bandwatch("record", str(path))
    assert again.code == 0
    assert "recorded 0 of 1 run" in again.out
    assert "1 already there" in " ".join(again.out.split())


def test_record_makes_the_default_store_and_keeps_it_out_of_git(
    project: Path, bandwatch: Command
) -> None:
    (project / "pyproject.toml").write_text("")
    write(project, run_of_commit(1))
    assert bandwatch("record", "x.json").code == 0
    assert (project / ".bandwatch/bandwatch.db").is_file()
    assert "*" in (project / ".bandwatch/.gitignore").read_text().split()


def test_record_merges_the_shards_of_a_run(project: Path, bandwatch: Command) -> None:
    run = run_of_commit(1)
    one = write(project, replace(run, results=run.results[:1]), "one.json")
    two = write(project, replace(run, results=run.results[1:]), "two.json")
    answer = bandwatch("record", str(one), str(two))
    assert "merged 2 shards" in answer.out
    assert "3" in bandwatch("list").out


def test_nothing_is_recorded_when_one_file_is_bad(project: Path, bandwatch: Command) -> None:
    good = write(project, run_of_commit(1))
    (project / "bad.json").write_text("{")
    answer = bandwatch("record", str(good), "bad.json")
    assert answer.code == 2
    assert "bad.json" in answer.err
    assert not (project / "runs.db").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "bad.json"),
        ('{"schema": 99, "kind": "run"}', "upgrade bandwatch"),
        ('{"schema": 1, "kind": "run", "x": NaN}', "NaN"),
        ("[1]", "expected"),
    ],
)
def test_a_bad_record_is_one_line_and_leaves_the_store_alone(
    filled: Path, bandwatch: Command, content: str, told: str
) -> None:
    (filled / "bad.json").write_text(content)
    before = (filled / "runs.db").read_bytes()
    answer = bandwatch("record", "bad.json")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert told in answer.err
    assert (filled / "runs.db").read_bytes() == before


def test_what_is_no_run_in_the_folder_of_ci_names_those_that_are(
    project: Path, bandwatch: Command
) -> None:
    folder = project / "out"
    folder.mkdir()
    (folder / "report.json").write_text('{"schema": 1, "kind": "verdicts"}')
    answer = bandwatch("record", "out/report.json")
    assert "it is a report, no run record; expected run records, such as head-0.json" in answer.err
    (folder / "head-0.json").write_bytes(write(project, run_of_commit(1)).read_bytes())
    for name in ("repeat-1.json", "base-0.json", "session.json"):
        (folder / name).write_text("{}")
    for given in ("out", "out/report.json", "out/session.json"):
        answer = bandwatch("record", given)
        assert answer.code == 2
        assert answer.err.count("\n") == 1
        assert "run records in out: head-0.json, repeat-1.json\n" in answer.err
    assert bandwatch("record", "out/head-0.json").code == 0


def test_a_record_of_50_megabytes_is_one_line(filled: Path, bandwatch: Command) -> None:
    with (filled / "big.json").open("wb") as file:
        file.truncate(50_000_000)
    answer = bandwatch("record", "big.json")
    assert answer.code == 2
    assert answer.err.count("\n") == 1


def test_the_store_flag_goes_before_the_settings(project: Path, bandwatch: Command) -> None:
    with Store.open(str(project / "other.db")) as store:
        store.record(run_of_commit(1))
    assert "1 of 1 run" in bandwatch("list", "--store", "sqlite:///other.db").out


@pytest.mark.usefixtures("filled")
def test_a_github_run_writes_its_outputs(
    filled: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(filled / "out"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(filled / "summary"))
    answer = bandwatch("check", "--format", "github")
    assert "::error file=kernels/relu/cuda.cu,line=12,title=relu/cuda_vector" in answer.out
    assert "verdict=regression" in (filled / "out").read_text()
    assert "| case |" in (filled / "summary").read_text()


def test_doctor_calls_a_folder_without_a_suite_unfit(project: Path, bandwatch: Command) -> None:
    answer = bandwatch("doctor")
    assert answer.code == 4
    assert "nothing can be measured: kernels" in answer.out


def test_the_dashboard_says_what_is_missing(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.cli.dashboard.find_spec", lambda _: None)
    answer = bandwatch("dashboard", "--check")
    assert answer.code == 4
    assert "streamlit, altair, pandas not installed" in answer.err
    assert "pip install 'altair>=5.5' 'pandas>=2.2' 'streamlit" in answer.err


def test_the_dashboard_is_given_the_store(
    filled: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> Any:
        seen.update(options, command=command)
        raise KeyboardInterrupt

    monkeypatch.setattr("tracker.cli.dashboard.subprocess.run", run)
    assert bandwatch("dashboard", "--port", "8600").code == 0
    assert seen["env"]["BANDWATCH_STORE"] == f"sqlite:///{filled}/runs.db"
    assert "8600" in seen["command"]
    assert "--allow-triage" not in seen["command"]
    bandwatch("dashboard", "--allow-triage")
    assert seen["command"][-1] == "--allow-triage"


def test_the_demo_judges_the_run_with_the_planted_slow_down(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [replace(run_of_commit(n, f), demo=True) for n, f in ((1, 1.0), (2, 1.2), (3, 1.0))]
    runs[1] = replace(runs[1], notes=("planted slow-down: relu reads its input twice",))
    for number, run in enumerate(runs):
        write(project, run, f"{number}.json")
    monkeypatch.setattr("tracker.demo.files", lambda _: project)
    answer = bandwatch("demo")
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert lines[:2] == ["Demo", "on purpose: planted slow-down: relu reads its input twice"]
    assert "▲ slower" in answer.out
    assert "bandwatch dashboard --store .bandwatch/demo.db" in answer.out
    assert (project / ".bandwatch/demo.db").is_file()
    assert not (project / "runs.db").exists()
    assert bandwatch("demo").out.splitlines()[:2] == lines[:2]


def test_the_demo_says_when_nothing_is_shipped(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.demo.files", lambda _: project / ".git")
    answer = bandwatch("demo")
    assert answer.code == 2
    assert "no recorded runs are shipped" in answer.err


def test_compare_takes_a_branch_for_its_commit_or_its_merge_base(
    filled: Path, bandwatch: Command
) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=filled, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("checkout", "--quiet", "-b", "trunk")
    git("commit", "--quiet", "--allow-empty", "--message=one")
    refused = bandwatch("compare", "trunk")
    assert refused.code == 2
    assert "cannot find run 'trunk'" in refused.err
    assert "--benchmark-base" in refused.err
    # Measured by --benchmark-base: with the head detached, so on no branch.
    run = another("of-the-trunk", AS_BASE, 1)
    commit = replace(run.checkout.commit or make_commit(1), sha=git("rev-parse", "HEAD"))
    keep(replace(run, checkout=replace(run.checkout, commit=commit, branch=None)))
    compare = ("compare", "trunk", "run-of-commit-4", "--format=json")
    found = json.loads(bandwatch(*compare).out)
    assert (found["facts"]["base_run"], found["notes"]) == ("of-the-trunk", [])
    # The trunk goes on, unmeasured, while the work is on a branch of what was measured.
    git("branch", "topic")
    git("commit", "--quiet", "--allow-empty", "--message=two")
    git("checkout", "--quiet", "topic")
    found = json.loads(bandwatch(*compare).out)
    assert found["facts"]["base_run"] == "of-the-trunk"
    assert ["taken is its merge base" in note for note in found["notes"]] == [True]
