"""Which run a command means where none is named: that of the suite, and newer others are told."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tracker.loop.changes import lines
from tracker.model import Run
from tracker.occasion import AGAIN, AS_BASE, IN_TURNS, LATER, in_a_word, newest
from tracker.store import Store
from tracker.tests.cli.conftest import Command
from tracker.tests.cli.test_check import STUDY, another, keep
from tracker.tests.factory import H200, sha

pytestmark = pytest.mark.usefixtures("filled")
LEFT_OUT = (
    "run-of-commit-4 is the newest run of the suite; 1 newer one is left out: "
    f"a-study-of-four, {STUDY}"
)


@pytest.fixture
def study(filled: object) -> Run:
    """A study of the newest commit, newer than its run of the suite."""
    del filled
    run = another("a-study-of-four", STUDY, factor=3.0)
    keep(run)
    return run


def document(bandwatch: Command, *arguments: str) -> dict[str, Any]:
    answer = bandwatch(*arguments, "--format", "json")
    found: dict[str, Any] = json.loads(answer.out)
    return found


@pytest.mark.parametrize("form", ["bmf", "github-action-benchmark", "openmetrics"])
def test_an_export_of_one_run_is_that_of_the_suite(
    bandwatch: Command, form: str, filled: object
) -> None:
    del filled
    before = bandwatch("export", "--format", form)
    assert before.err == ""
    keep(another("a-study-of-four", STUDY, factor=3.0))
    after = bandwatch("export", "--format", form)
    assert (after.code, after.out) == (0, before.out)
    assert after.err == f"{LEFT_OUT}\n"
    named = bandwatch("export", "a-study-of-four", "--format", form)
    assert named.out != before.out
    assert named.err == ""


def test_an_export_of_a_commit_is_its_run_of_the_suite(bandwatch: Command, study: Run) -> None:
    del study
    answer = bandwatch("export", sha(4), "--format", "jsonl")
    assert "run-of-commit-4" in answer.out
    assert "a-study-of-four" not in answer.out
    assert LEFT_OUT in answer.err


def test_a_note_cannot_forge_a_line(bandwatch: Command, filled: object) -> None:
    del filled
    keep(another("a-study-of-four", "studies: a\nwrote all.jsonl\x1b[2J " + "x" * 1500))
    answer = bandwatch("export", "--format", "bmf")
    assert answer.err.count("\n") == 1
    assert "\x1b" not in answer.err
    assert len(answer.err) < 400


def test_a_store_of_studies_alone_has_no_newest_run_to_export(bandwatch: Command) -> None:
    only = ("--store", "sqlite:///studies.db")
    with Store.open("studies.db") as store:
        store.record(another("the-only-one", STUDY))
    for arguments in (("export", "--format", "bmf"), ("compare", "latest")):
        answer = bandwatch(*arguments, *only)
        assert (answer.code, answer.out) == (2, "")
        assert "cannot find a run of the suite" in answer.err
        assert "the-only-one" in answer.err
    metrics = bandwatch("export", "--format", "openmetrics", *only)
    assert "bandwatch_median_seconds{" not in metrics.out
    assert metrics.out.endswith("# EOF\n")
    assert metrics.err == f"no run on {H200.gpu_model} is of the suite, so it is left out\n"


@pytest.mark.parametrize("form", ["openmetrics", "jsonl", "bmf"])
def test_an_empty_name_is_no_name_of_the_newest(bandwatch: Command, form: str) -> None:
    answer = bandwatch("export", "", "--format", form)
    assert (answer.code, answer.out) == (2, "")
    assert "cannot find run ''" in answer.err


@pytest.mark.parametrize("form", ["openmetrics", "jsonl", "bmf"])
def test_a_gpu_model_that_is_not_there_is_no_empty_export(bandwatch: Command, form: str) -> None:
    answer = bandwatch("export", "--format", form, "--gpu", "NVIDIA A100")
    assert (answer.code, answer.out) == (2, "")
    assert "NVIDIA A100" in answer.err


@pytest.mark.parametrize("b", [[], ["main"], [sha(4)]])
def test_compare_takes_the_run_of_the_suite_on_both_sides(
    bandwatch: Command, study: Run, b: list[str]
) -> None:
    found = document(bandwatch, "compare", sha(3), *b)
    assert found["facts"]["run"] == "run-of-commit-4"
    assert LEFT_OUT in found["notes"]
    back = document(bandwatch, "compare", "main", "run-of-commit-2")
    assert back["facts"]["base_run"] == "run-of-commit-4"
    assert LEFT_OUT in back["notes"]
    named = document(bandwatch, "compare", "run-of-commit-4", study.run_id)
    assert named["facts"]["run"] == study.run_id
    assert named["exit_code"] == 1


@pytest.mark.parametrize("a", ["main", "latest"])
def test_compare_with_its_own_branch_takes_the_run_of_the_suite_before(
    bandwatch: Command, study: Run, a: str
) -> None:
    del study
    keep(another("a-study-of-three", STUDY, number=3, started_at="2026-03-02T00:03:30+00:00"))
    facts = document(bandwatch, "compare", a)["facts"]
    assert (facts["base_run"], facts["run"]) == ("run-of-commit-3", "run-of-commit-4")


def test_a_branch_with_a_study_alone_stands_for_it(bandwatch: Command, study: Run) -> None:
    own = replace(study, run_id="a-study-elsewhere", checkout=replace(study.checkout, branch="dev"))
    keep(own)
    facts = document(bandwatch, "compare", "main", "dev")["facts"]
    assert (facts["base_run"], facts["run"]) == ("run-of-commit-4", "a-study-elsewhere")


def test_list_and_history_say_what_a_run_was_for(bandwatch: Command, study: Run) -> None:
    keep(another("measured-again", AGAIN, started_at="2026-03-02T04:00:00+00:00"))
    found = document(bandwatch, "list")
    assert [(row["run"], row["purpose"]) for row in found["tables"]["runs"]][:3] == [
        (study.run_id, STUDY),
        ("measured-again", AGAIN),
        ("run-of-commit-4", None),
    ]
    assert any("run-of-commit-4 is the newest run of the suite" in note for note in found["notes"])
    history = document(bandwatch, "history", "relu")["tables"]["history"]
    assert [row["purpose"] for row in history[-3:]] == [None, AGAIN, STUDY]
    for shown in (bandwatch("list").out, bandwatch("history", "relu").out):
        assert "study" in shown
        assert "repeat" in shown
        assert "suite" in shown


def test_without_such_a_run_nothing_is_said_of_it(bandwatch: Command) -> None:
    assert document(bandwatch, "list")["notes"] == []
    assert "suite" not in bandwatch("list").out
    assert "suite" not in bandwatch("history", "relu").out


def test_many_newer_runs_are_passed_over(filled: object) -> None:
    del filled
    for number in range(60):
        at = f"2026-03-02T05:{number:02d}:00+00:00"
        keep(another(f"turns-{number:03d}", IN_TURNS, started_at=at))
    with Store.open("runs.db", read_only=True) as store:
        found = newest(store, gpu_model=H200.gpu_model)
        assert found is not None
        assert found.run.run_id == "run-of-commit-4"
        assert len(found.left_out) == 60
        before = newest(store, but=found.run)
        assert before is not None
        assert before.run.run_id == "run-of-commit-3"


def test_a_study_in_another_environment_ends_no_line(study: Run) -> None:
    elsewhere = replace(study.environment, libraries={"torch": "9.9"})
    keep(replace(study, run_id="a-study-elsewhere", environment=elsewhere))
    with Store.open("runs.db", read_only=True) as store:
        found = list(lines(store, "main"))
    assert [line.shas for line in found] == [tuple(map(sha, (1, 2, 3, 4)))] * 3


def test_each_purpose_has_a_word() -> None:
    notes = (None, STUDY, AGAIN, IN_TURNS, LATER, AS_BASE)
    assert [in_a_word(note) for note in notes] == [
        "suite",
        "study",
        "repeat",
        "turns",
        "backfill",
        "base",
    ]
