"""What a command leaves out of a list it counts, and names the option that shows it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracker.report.hidden import hidden
from tracker.store import Store
from tracker.tests.cli.conftest import Command, run_of_commit
from tracker.tests.cli.test_commands import write


def keep_changed(*numbers: int) -> None:
    with Store.open("runs.db") as store:
        for number in numbers:
            run = run_of_commit(number)
            checkout = replace(run.checkout, dirty=True, branch="topic")
            store.record(replace(run, run_id=f"changed-{number}", checkout=checkout))


def test_one_is_told_as_one_and_none_not_at_all() -> None:
    assert hidden(0, "0 runs", "--all") is None
    assert hidden(1, "1 run", "--all") == "1 run is hidden; --all shows it"
    assert hidden(2, "2 runs", "--all") == "2 runs are hidden; --all shows them"


@pytest.mark.usefixtures("filled")
def test_a_history_counts_older_results_and_the_option_shows_all(bandwatch: Command) -> None:
    answer = bandwatch("history", "relu", "--limit", "3")
    assert "1 older result is hidden; --limit 4 shows it" in answer.out
    answer = bandwatch("history", "relu", "--limit", "1")
    assert "3 older results are hidden; --limit 4 shows them" in answer.out
    for limit in ("4", "5"):
        answer = bandwatch("history", "relu", "--limit", limit)
        assert "4 results" in answer.out
        assert "hidden" not in answer.out


@pytest.mark.usefixtures("filled")
def test_a_history_counts_results_with_uncommitted_changes(bandwatch: Command) -> None:
    keep_changed(5, 6)
    told = "2 results with uncommitted changes are hidden; --dirty shows them"
    assert told in bandwatch("history", "relu").out.splitlines()
    assert "hidden" not in bandwatch("history", "relu", "--dirty").out
    facts = json.loads(bandwatch("history", "relu", "--format", "json").out)["facts"]
    assert (facts["results"], facts["older_hidden"], facts["dirty_hidden"]) == (4, 0, 2)
    # Of another branch nothing is missing.
    assert "hidden" not in bandwatch("history", "relu", "--branch", "main").out
    nothing = bandwatch("history", "relu", "--branch", "topic").out
    assert told in nothing
    assert "no result matches" in nothing


@pytest.mark.usefixtures("filled")
def test_what_a_history_names_shows_every_result_whichever_limit_hid_it(bandwatch: Command) -> None:
    keep_changed(5, 6)
    line = (
        "2 older results are hidden; --limit 4 shows them; 2 results with uncommitted changes are "
        "hidden; --dirty --limit 6 shows them"
    )
    assert line in " ".join(bandwatch("history", "relu", "--limit", "2").out.split())
    answer = bandwatch("history", "relu", "--dirty", "--limit", "6")
    assert "6 results" in answer.out
    assert "hidden" not in answer.out


@pytest.mark.usefixtures("filled")
def test_a_list_of_runs_counts_those_that_match(bandwatch: Command) -> None:
    keep_changed(5, 6)
    assert "3 older runs are hidden; --limit 6 shows them" in bandwatch("list", "--limit", "3").out
    answer = bandwatch("list", "--branch", "topic", "--limit", "1").out
    assert "1 older run is hidden; --limit 2 shows it" in answer
    assert "1 of 6 runs" in answer
    assert "hidden" not in bandwatch("list", "--branch", "topic", "--limit", "2").out
    assert "hidden" not in bandwatch("list", "--gpu", "NVIDIA A100").out


@pytest.mark.usefixtures("filled")
def test_evaluate_counts_series_that_it_did_not_look_at(bandwatch: Command) -> None:
    answer = bandwatch("evaluate", "--limit", "1").out
    assert "2 further series are hidden; --limit 3 shows them" in answer
    assert "hidden" not in bandwatch("evaluate", "--limit", "3").out


def test_evaluate_counts_series_without_a_trusted_run(project: Path, bandwatch: Command) -> None:
    run = run_of_commit(1)
    shared = tuple(
        replace(result, during=replace(result.during, other_processes=1))
        for result in run.results
        if result.during is not None
    )
    assert len(shared) == len(run.results)
    with Store.open(str(project / "runs.db")) as store:
        store.record(replace(run, results=shared))
    answer = bandwatch("evaluate").out
    assert "3 series have no trusted run" in answer
    assert "0 series" in answer


def test_the_demo_hides_rows_that_its_own_option_shows(
    bandwatch: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        write(project, replace(run_of_commit(number), demo=True), f"{number}.json")
    monkeypatch.setattr("tracker.demo.files", lambda _: project)
    monkeypatch.setattr("tracker.report.verdicts.TEXT_LIMIT", 1)
    assert "hidden: 3 no change (bandwatch demo --all shows every row)" in bandwatch("demo").out
    assert "hidden" not in bandwatch("demo", "--all").out
