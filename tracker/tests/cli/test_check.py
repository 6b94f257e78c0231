"""Which run `bandwatch check` judges where none is named, and what it says of that."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tracker.model import Run
from tracker.occasion import AGAIN, IN_TURNS, LATER
from tracker.store import Store
from tracker.tests.cli.conftest import Command, run_of_commit
from tracker.tests.factory import make_case, sha

STUDY = "studies: a part of the suite (ladder, width)"


def keep(*runs: Run) -> None:
    with Store.open("runs.db") as store:
        for run in runs:
            store.record(run)


def another(name: str, note: str, number: int = 4, factor: float = 1.0, **more: Any) -> Run:
    """A further run of a commit, an hour after all others, that tells what it was for."""
    run = run_of_commit(number, factor)
    started = more.pop("started_at", "2026-03-02T05:00:00+00:00")
    return replace(
        run,
        run_id=name,
        notes=(note,),
        started_at=started,
        finished_at=None,
        complete=False,
        **more,
    )


def of_kernel(run: Run, kernel: str) -> Run:
    return replace(run, results=tuple(r for r in run.results if r.case.kernel == kernel))


def facts(bandwatch: Command, *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(bandwatch("check", *arguments, "--format", "json").out)
    return {**told["facts"], "notes": told["notes"], "code": told["exit_code"]}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("note", [STUDY, LATER, IN_TURNS])
def test_a_newer_run_for_something_else_is_passed_over_and_told(
    bandwatch: Command, note: str
) -> None:
    keep(another("something-else", note))
    told = facts(bandwatch)
    assert told["run"] == "run-of-commit-4"
    assert told["code"] == 1
    (line,) = [text for text in told["notes"] if "something-else" in text]
    assert "1 run is newer: something-else" in line
    assert note in line
    assert "bandwatch check something-el" in line


@pytest.mark.usefixtures("filled")
def test_a_study_that_is_named_is_judged(bandwatch: Command) -> None:
    keep(another("something-else", STUDY))
    assert facts(bandwatch, "something-else")["run"] == "something-else"
    assert facts(bandwatch, "someth")["run"] == "something-else"


@pytest.mark.usefixtures("filled")
def test_a_commit_stands_for_its_run_of_the_suite_else_for_its_newest(bandwatch: Command) -> None:
    keep(another("a-study-of-four", STUDY), another("a-study-of-nine", STUDY, number=9))
    assert facts(bandwatch, sha(4))["run"] == "run-of-commit-4"
    assert facts(bandwatch, sha(9))["run"] == "a-study-of-nine"


@pytest.mark.usefixtures("filled")
def test_a_part_of_the_suite_that_a_person_measured_is_the_newest_run(bandwatch: Command) -> None:
    keep(another("measured-by-hand", "a part of the suite: -k relu"))
    told = facts(bandwatch)
    assert told["run"] == "measured-by-hand"
    assert not [text for text in told["notes"] if "newer" in text]


@pytest.mark.usefixtures("filled")
def test_what_was_measured_again_counts_for_its_case_and_the_rest_stays(bandwatch: Command) -> None:
    # Two fresh processes show relu as it ever was: the loss of the first was the machine's.
    for number in (1, 2):
        again = of_kernel(
            another(f"repeat-no-{number}", AGAIN, started_at=f"2026-03-02T06:0{number}:00+00:00"),
            "relu",
        )
        keep(again)
    answer = bandwatch("check", "--all", "--format", "json")
    told = json.loads(answer.out)
    rows = told["tables"]["verdicts"]
    assert told["facts"]["run"] == "run-of-commit-4"
    assert len(rows) == 3
    assert "judged with 2 runs that measured cases again" in told["notes"]
    (relu,) = [row for row in rows if row["kernel"] == make_case("relu").kernel]
    assert relu["outcome"] != "regression"


@pytest.mark.usefixtures("filled")
def test_a_changed_tree_is_not_taken_for_the_same_one_measured_again(bandwatch: Command) -> None:
    run = of_kernel(another("repeat-no-1", AGAIN), "relu")
    keep(replace(run, checkout=replace(run.checkout, dirty=True)))
    told = facts(bandwatch)
    assert told["run"] == "run-of-commit-4"
    assert told["code"] == 1
    assert [text for text in told["notes"] if "1 run is newer: repeat-no-1" in text]


@pytest.mark.usefixtures("project")
def test_a_store_without_a_run_of_the_suite_says_what_it_has(bandwatch: Command) -> None:
    keep(another("the-only-one", STUDY))
    answer = bandwatch("check")
    assert answer.code == 2
    assert "cannot find a run of the suite" in answer.err
    assert "the-only-one" in answer.err
    assert answer.err.count("\n") == 1
