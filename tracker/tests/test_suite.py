"""A suite judged as a whole."""

from dataclasses import replace

import pytest

from tracker.advice import advise
from tracker.errors import ExitCode
from tracker.model import VerdictKind
from tracker.sides import Side
from tracker.suite import settle
from tracker.tests.sides import MIB, make_result, make_side
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


def test_what_is_not_sure_among_many_is_told_what_one_case_is_told() -> None:
    # Both ask the same of the user, so both use the same words.
    apart = settle([SAME] * 200 + [HINT]).verdicts[-1]
    assert apart.what_would_decide == advise(apart.more_runs)
    turned = settle([SAME] * 200 + [replace(HINT, in_turns=True)]).verdicts[-1]
    assert turned.what_would_decide == "measure more pairs, or quieten the machine"


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


def _spiky(mib: int, *, stray: bool) -> Side:
    """Return a side after twenty runs of its level; one of them strayed by 6 % or none."""
    usual_s = 2 * mib * MIB / 3.6e12
    past = [make_result(mib, seed=s) for s in range(10, 30)]
    if stray:
        past[7] = make_result(mib, center_s=1.06 * usual_s, seed=7)
    return make_side(mib, history=tuple(past))


def test_what_strays_in_other_cases_may_stray_here_too() -> None:
    sizes = [256 + 16 * number for number in range(10)]
    quiet = [judge(_spiky(mib, stray=True), make_side(mib, seed=1)) for mib in sizes[1:]]
    lost = judge(_spiky(sizes[0], stray=False), make_side(sizes[0], 0.06, seed=1))
    assert lost.kind is VerdictKind.REGRESSION, "alone it is sure"
    alone = settle([lost]).verdicts[0]
    among = settle([lost, *quiet]).verdicts[0]
    assert alone.kind is VerdictKind.REGRESSION
    assert among.kind is VerdictKind.UNDECIDED
    assert among.has(ReasonCode.SUSPICIOUS)
    # A loss or a gain: twice the share of the side.
    assert among.p_value == pytest.approx(2 * 9 / 200)
    larger = judge(_spiky(sizes[0], stray=False), make_side(sizes[0], 0.12, seed=1))
    assert settle([larger, *quiet]).verdicts[0].kind is VerdictKind.REGRESSION


def test_repeats_tell_a_loss_from_what_strays_in_other_cases() -> None:
    sizes = [256 + 16 * number for number in range(10)]
    quiet = [judge(_spiky(mib, stray=True), make_side(mib, seed=1)) for mib in sizes[1:]]
    slow_s = 1.06 * 2 * sizes[0] * MIB / 3.6e12
    again = tuple(make_result(sizes[0], center_s=slow_s, seed=s) for s in (5, 6, 7))
    head = make_side(sizes[0], 0.06, seed=1, repeats=again)
    lost = judge(_spiky(sizes[0], stray=False), head)
    assert settle([lost, *quiet]).verdicts[0].kind is VerdictKind.REGRESSION
