"""What a branch is compared with before it is merged, and that it is said plainly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracker.config import StoreChoice
from tracker.merge_base import base_of, below
from tracker.model import Checkout, Commit
from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project
from tracker.tests.sandbox import Sandbox, alone, envelope, on_gpu

pytest_plugins = ("pytester",)


@pytest.fixture
def sandbox(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    return alone(pytester, monkeypatch, columns=200)


def text(result: pytest.RunResult) -> str:
    return " ".join(str(result.stdout).split())


def sha(sandbox: Sandbox, name: str = "HEAD") -> str:
    return fake.git(sandbox.folder, "rev-parse", name)


def test_a_loss_does_not_hide_behind_an_earlier_commit_of_its_branch(sandbox: Sandbox) -> None:
    sandbox.records(relu=on_gpu())
    sandbox.run("--benchmark")
    base = sha(sandbox)
    sandbox.git("switch", "--quiet", "--create", "feature")
    for seed in (2, 3):
        sandbox.commit()
        sandbox.records(relu=on_gpu(factor=1.2, seed=seed))
        result = sandbox.run("--benchmark")
        assert result.ret == 1, text(result)
        told = f"judged against the merge base {base[:12]} or what stands before it: 1 case from"
        assert told in text(result)


def test_results_that_only_the_team_has_are_read_and_nothing_is_written_there(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = f"sqlite:///{tmp_path}/team.db"
    sandbox.records(relu=on_gpu(), add=on_gpu("add"))
    sandbox.run("--benchmark", "--bandwatch-store", team)
    with Store.open(team, read_only=True) as store:
        before = store.revision()
    sandbox.git("switch", "--quiet", "--create", "feature")
    sandbox.commit()
    monkeypatch.setenv("BANDWATCH_TEAM_STORE", team)
    (tmp_path / "team.db").chmod(0o444)
    sandbox.records(relu=on_gpu(factor=1.2, seed=2), silu=on_gpu("silu"))
    result = sandbox.run("--benchmark")
    assert result.ret == 1, text(result)
    assert f": 1 case from {team}, 1 case without a result" in text(result)
    with Store.open(team, read_only=True) as store:
        assert store.revision() == before
    # What was read is kept here, so that `bandwatch check` says the same without the team's store.
    assert len(sandbox.stored()) == 2


@pytest.mark.parametrize(
    "team", ["sqlite:///nowhere/team.db", "postgresql://a:secret@127.0.0.1:9/x"]
)
def test_a_team_s_store_out_of_reach_costs_the_comparison_not_the_run(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, team: str
) -> None:
    sandbox.git("switch", "--quiet", "--create", "feature")
    sandbox.commit()
    monkeypatch.setenv("BANDWATCH_TEAM_STORE", team)
    sandbox.records(relu=on_gpu())
    result = sandbox.run("--benchmark")
    assert result.ret == 0
    assert "no comparable result of the merge base" in text(result)
    assert "cannot be read" in text(result)
    assert "secret" not in text(result)
    assert len(sandbox.stored()) == 1


def test_without_any_result_of_the_merge_base_it_is_said_what_served(sandbox: Sandbox) -> None:
    sandbox.git("switch", "--quiet", "--create", "feature")
    for seed, told, against in (
        (1, "no earlier comparable result", "judged against nothing;"),
        (2, "the parent commit", "judged against the nearest ancestor;"),
    ):
        sandbox.commit()
        sandbox.records(relu=on_gpu(seed=seed))
        result = sandbox.run("--benchmark")
        assert "--benchmark-base measures the merge base" in text(result)
        assert told in text(result)
        assert against in " ".join(text(result).split())


def test_another_environment_s_results_of_the_merge_base_are_none(sandbox: Sandbox) -> None:
    sandbox.records(relu=envelope())
    sandbox.run("--benchmark")
    sandbox.git("switch", "--quiet", "--create", "feature")
    sandbox.commit()
    sandbox.records(relu=on_gpu())
    assert "no comparable result of the merge base" in text(sandbox.run("--benchmark"))


def test_on_the_main_branch_nothing_is_said_of_a_merge_base(sandbox: Sandbox) -> None:
    sandbox.records(relu=on_gpu())
    assert "merge base" not in text(sandbox.run("--benchmark"))


def test_the_flag_alone_is_wrong_use(sandbox: Sandbox) -> None:
    result = sandbox.run("--benchmark-base")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "give both" in str(result.stderr)


def test_what_is_below_a_commit(tmp_path: Path) -> None:
    root = tmp_path / "project"
    first, second = fake.repository(root, [{}, {}])
    commit = Commit(second, (first,))
    assert base_of(Checkout(commit=commit), root) is None
    assert below(Checkout(commit=commit), root) == first
    assert below(Checkout(commit=commit, dirty=True), root) == second
    assert below(Checkout(), root) is None
    assert below(Checkout(commit=Commit(first)), root) is None
    fake.git(root, "switch", "--quiet", "--create", "feature")
    third = fake.commit(root, "More", {"number.txt": "2"})
    checkout = Checkout(commit=Commit(third, (second,)), dirty=True)
    assert base_of(checkout, root) == below(checkout, root) == second


def benchmark(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BANDWATCH", "GITHUB"))}
    environment |= {"COLUMNS": "200", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--benchmark", *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_merge_base_is_measured_when_the_user_agrees_and_only_once(tmp_path: Path) -> None:
    root = tmp_path / "project"
    base = project.make(root)
    fake.git(root, "switch", "--quiet", "--create", "feature")
    head = project.change(root, {}, {"relu": 1.2, "add": 1.0})
    measuring = ("perf", "-k", "relu", "--benchmark-base")
    first = benchmark(root, *measuring)
    told = " ".join(first.stdout.split())
    assert f"--benchmark-base: measured 1 case of {base[:12]} just now" in told, first.stdout
    assert f"judged against the merge base {base[:12]} or what stands before it: 1 case" in told
    assert "1 regression of 1 case: exit 1" in told
    assert first.returncode == 1
    with Store.open(f"sqlite:///{root}/.bandwatch/bandwatch.db", read_only=True) as store:
        assert [run.sha for run in runs(store)] == [head, base]
    again = benchmark(root, *measuring)
    assert f"has results of {base[:12]}, nothing was measured" in " ".join(again.stdout.split())
    # More of the suite was not measured at the base yet.
    whole = benchmark(root, "perf", "--benchmark-base")
    assert f"measured 2 cases of {base[:12]} just now" in " ".join(whole.stdout.split())
    assert fake.git(root, "status", "--porcelain") == ""
    assert len(fake.git(root, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_a_base_that_cannot_be_measured_does_not_stop_the_session(tmp_path: Path) -> None:
    root = tmp_path / "project"
    project.make(root)
    fake.commit(root, "Break", {"perf/test_perf.py": "import nothing_of_that_name\n"})
    fake.git(root, "switch", "--quiet", "--create", "feature")
    project.change(root, {"perf/test_perf.py": project.SUITE}, {"relu": 1.0, "add": 1.0})
    found = benchmark(root, "perf", "-k", "relu", "--benchmark-base")
    told = " ".join(found.stdout.split())
    assert "was not measured: cannot collect perf/test_perf.py" in told
    assert "--benchmark-base measures" not in told  # it was just tried
    assert "1 no baseline of 1 case" in told
    assert found.returncode == 0


def test_the_team_s_store_is_a_setting(tmp_path: Path) -> None:
    from tracker.config import load_config

    (tmp_path / "pyproject.toml").write_text(
        '[tool.bandwatch]\nteam_store = "postgresql://reader:secret@db.example.org/bandwatch"\n'
    )
    team = load_config(start=tmp_path, environ={}).team
    assert isinstance(team, StoreChoice)
    assert "secret" not in team.shown
    there = {"BANDWATCH_TEAM_STORE": "sqlite:///x.db"}
    chosen = load_config(start=tmp_path, environ=there).team
    assert chosen is not None
    assert chosen.shown == f"sqlite:///{tmp_path}/x.db"
