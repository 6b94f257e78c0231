"""Which cases ci measures again: what changed, what is open, and what the monitor asks for."""

from dataclasses import replace

from tracker.loop.ci import _suspicious
from tracker.report.judged import Judged
from tracker.tests.sides import make_side
from tracker.verdict import Verdict, judge

SAME: Verdict = judge(make_side(256), make_side(256, seed=1))
SLOW: Verdict = judge(make_side(256), make_side(256, 0.5, seed=1))
OPEN: Verdict = judge(make_side(64), make_side(64, 0.03, seed=1))
FIRST: Verdict = judge(None, make_side())


def test_a_quiet_case_is_measured_again_where_the_monitor_asks_for_it() -> None:
    assert not _suspicious(Judged(SAME, None))
    assert _suspicious(Judged(replace(SAME, worth_repeating=True), None))


def test_changes_and_open_cases_are_measured_again_and_first_runs_are_not() -> None:
    assert _suspicious(Judged(SLOW, None))
    assert _suspicious(Judged(OPEN, None))
    assert not _suspicious(Judged(FIRST, None))
