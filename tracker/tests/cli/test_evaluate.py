"""`bandwatch evaluate` on a store and by simulation."""

import json

import pytest

from tracker.cli.evaluate import synthetic_document
from tracker.evaluate.synthetic import Figure
from tracker.report.markdown import to_markdown
from tracker.tests.cli.conftest import Command


@pytest.mark.usefixtures("filled")
def test_each_series_tells_its_noise_and_what_the_gate_could_show(bandwatch: Command) -> None:
    answer = bandwatch("evaluate", "--format", "json")
    assert answer.code == 0
    document = json.loads(answer.out)
    rows = document["tables"]["series"]
    assert len(rows) == 3
    assert all(0 < row["gate_loss"] < 0.5 for row in rows)
    assert all(row["monitor_loss"] is None for row in rows)
    assert document["facts"]["too_short"] == 3


@pytest.mark.usefixtures("filled")
def test_people_see_a_table_and_why_a_short_series_has_no_replay(bandwatch: Command) -> None:
    answer = bandwatch("evaluate")
    assert "gate shows" in answer.out
    assert "too short" in answer.out


def test_a_missing_store_is_one_line(bandwatch: Command) -> None:
    answer = bandwatch("evaluate", "--store", "sqlite:///none.db")
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1


def test_missed_goals_are_named() -> None:
    met = Figure("monitor", "Gaussian", "a rate", 0.01, 10, most=0.02)
    missed = Figure("history", "AR(1) 0.5", "a share", 0.07, 10, most=0.05)
    document = synthetic_document([met, missed, Figure("a", "b", "c", 1.0, 10)], seed=4, count=10)
    assert "1 of 2 goals met" in document.summary
    assert "history, AR(1) 0.5, a share" in document.notes[0]
    assert "at most 0.05" in to_markdown(document)
