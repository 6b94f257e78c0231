"""Verdicts on runs as the gate gives them, for the tests of whole suites."""

from datetime import date

from tracker.gate import Gate, judge_run
from tracker.model import Run
from tracker.queries import find_run
from tracker.store import Store
from tracker.thresholds import Thresholds


def judge_last(store: Store, *runs: Run) -> Gate:
    """Record runs and return the verdicts on the last, by the usual thresholds."""
    for run in runs:
        store.record(run)
    info = find_run(store, runs[-1].run_id)
    return judge_run(store, info, Thresholds(), today=date(2026, 11, 30))
