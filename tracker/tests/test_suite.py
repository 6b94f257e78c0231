"""A suite judged as a whole."""

from dataclasses import replace

from tracker.errors import ExitCode
from tracker.model import VerdictKind
from tracker.suite import settle
from tracker.tests.sides import make_side
from tracker.verdict import ReasonCode, Verdict, judge

SAME = judge(make_side(256), make_side(256, seed=1))
SLOW = judge(make_side(256), make_side(256, 0.5, seed=1))
HINT = replace(judge(make_side(64), make_side(64, 0.06, seed=1)), p_value=5e-4)


def test_a_clear_regression_stands_in_any_suite() -> None:
    found = settle([SLOW, *[SAME] * 400])
    assert found.verdicts[0] == SLOW
    assert found.exit_code is ExitCode.REGRESSION
    assert found.suspects == ()


def test_what_would_hold_alone_is_suspicious_among_many() -> None:
    assert HINT.kind is VerdictKind.REGRESSION
    assert settle([HINT]).verdicts == (HINT,)
    found = settle([SAME] * 200 + [HINT])
    (verdict,) = found.verdicts[200:]
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons[0].code is ReasonCode.SUSPICIOUS
    assert verdict.effect == HINT.effect
    assert verdict.more_runs is not None
    assert verdict.more_runs >= 1
    assert "fresh processes" in verdict.what_would_decide
    assert found.exit_code is ExitCode.UNDECIDED
    assert [s.case for s in found.suspects] == [HINT.case]


def test_many_regressions_lower_the_bar_for_each_other() -> None:
    alone = settle([SAME] * 200 + [HINT])
    beside = settle([SAME] * 200 + [HINT] + [SLOW] * 50)
    assert beside.p_bar > alone.p_bar
    assert beside.verdicts[200].kind is VerdictKind.REGRESSION


def test_what_was_not_compared_is_left_as_it_is() -> None:
    first: Verdict = judge(None, make_side())
    assert settle([first, SAME]).verdicts == (first, SAME)
    assert settle([first]).exit_code is ExitCode.OK


def test_an_empty_run_is_undecided_and_says_so() -> None:
    found = settle([])
    assert found.exit_code is ExitCode.UNDECIDED
    assert found.reasons[0].code is ReasonCode.EMPTY_RUN
