"""The commands on a project with a history; one test with real measuring processes."""

import json
from pathlib import Path

import click
import pytest

from tracker.cli.main import cli
from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project
from tracker.tests.loop.conftest import Command


def sha(root: Path, name: str) -> str:
    return fake.git(root, "rev-parse", name)


@pytest.mark.slow
def test_ab_finds_what_a_commit_did_to_each_case(history: Path, bandwatch: Command) -> None:
    answer = bandwatch("ab", "main~3", "main~2", "--format", "json", "--record")
    found = json.loads(answer.out)
    outcomes = {row["kernel"]: row["outcome"] for row in found["tables"]["verdicts"]}
    assert outcomes == {"relu": "regression", "add": "no change"}
    assert answer.code == 1
    with Store.open("sqlite:///.bandwatch/bandwatch.db", read_only=True) as store:
        commits = {run.sha for run in runs(store)}
    assert commits == {sha(history, "main~3"), sha(history, "main~2")}
    assert not list((history / ".bandwatch/worktrees").iterdir())
    assert fake.git(history, "status", "--porcelain") == ""


def example(name: str) -> list[str]:
    """Return the words of the example in a command's own help."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    line = (command.help or "").partition("Example: bandwatch ")[2].partition("\n")[0]
    return line.split()


@pytest.mark.usefixtures("no_processes")
def test_backfill_then_bisect_find_the_slow_commit(history: Path, bandwatch: Command) -> None:
    filled = bandwatch(*example("backfill"), "--format", "json")
    assert json.loads(filled.out)["facts"] == {
        "commits": 5,
        "recorded": 5,
        "known": 0,
        "skipped": 0,
        "left": 0,
    }
    shown = bandwatch("history", "relu", "--format", "json")
    places = [row["commit"] for row in json.loads(shown.out)["tables"]["history"]]
    assert places == [sha(history, f"main~{n}") for n in (4, 3, 2, 1, 0)]
    answer = bandwatch(*example("bisect"), "--format", "json")
    assert json.loads(answer.out)["facts"]["culprit"] == sha(history, "main~2")
    assert answer.code == 0
    text = bandwatch(*example("bisect"))
    assert "files: number.txt, speeds.json" in text.out
    # Everything is in the notebook: the second call read no commit.
    assert "reading" not in text.err


@pytest.mark.usefixtures("no_processes")
def test_backfill_has_nothing_to_do_the_second_time(history: Path, bandwatch: Command) -> None:
    for _ in range(2):
        answer = bandwatch("backfill", "main~1..main", "--format", "json")
        # The newest commit is measured each time: it tells in which environment we are.
        assert json.loads(answer.out)["facts"]["recorded"] == 1


def test_a_selection_is_filled_once_too(
    history: Path, bandwatch: Command, no_processes: fake.FakeMeasure
) -> None:
    no_processes.keywords = {"relu": (project.RELU,)}
    asked = ("backfill", "v1.0..main", "--quick", "-k", "relu", "--format", "json")
    counts = [json.loads(bandwatch(*asked).out)["facts"]["recorded"] for _ in range(2)]
    # Again only the newest, which tells in which environment we are.
    assert counts == [5, 1]
    # What was measured in part is measured for the whole.
    whole = json.loads(bandwatch("backfill", "v1.0..main", "--format", "json").out)
    assert whole["facts"]["recorded"] == 5


@pytest.mark.usefixtures("no_processes")
def test_ab_of_a_commit_with_itself_is_no_change(history: Path, bandwatch: Command) -> None:
    answer = bandwatch(*example("ab"), "--all")
    assert answer.code == 0
    assert "2 no change of 2 cases" in answer.out


def test_a_second_command_in_the_same_project_is_told_to_wait(
    history: Path, bandwatch: Command
) -> None:
    from tracker.loop.lock import held
    from tracker.loop.workplace import own_folder

    with held(own_folder(history) / "loop.lock", 0):
        answer = bandwatch("ab", "main~1")
    assert answer.code == 4
    assert "wait for it" in answer.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ab", "no-such-branch"), "git knows nothing by that name"),
        (("bisect", project.RELU, "main", "v1.0"), "give the older one first"),
        (("bisect", project.RELU, "main", "main"), "no commit lies between"),
        (("bisect", "relu", "v1.0", "main"), "there is no such file"),
        (("backfill", "main"), "expected OLD..NEW"),
        (("backfill", "main~1...main"), "expected OLD..NEW"),
        (("backfill", "main~1..main", "--budget", "soon"), "expected one such as 90s"),
    ],
)
def test_wrong_use_is_one_line(
    history: Path, bandwatch: Command, arguments: tuple[str, ...], told: str
) -> None:
    answer = bandwatch(*arguments)
    assert answer.code == 2
    assert told in answer.err
    assert answer.err.count("\n") == 1
