"""Decisions are fast; the bounds leave room for a busy machine."""

from functools import partial

from tracker.evaluate.speed import best_of, decision_s, series
from tracker.stats.change_point import history


def test_a_decision_after_a_hundred_runs_takes_about_half_a_millisecond() -> None:
    assert decision_s() <= 3e-3


def test_ten_thousand_runs_are_searched_in_about_ten_milliseconds() -> None:
    assert best_of(5, partial(history, list(series(10_000)))) <= 60e-3
