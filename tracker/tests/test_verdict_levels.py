"""Verdicts beside the level of a history: odd baselines, strays, and which runs count."""

from typing import Any

import pytest

from tracker import verdict as subject
from tracker.errors import ExitCode
from tracker.model import VerdictKind
from tracker.tests.sides import MIB, make_result, make_side
from tracker.tests.test_verdict import check, check_undecided, judge
from tracker.verdict import Policy, ReasonCode


def test_only_the_newest_level_of_the_history_counts() -> None:
    old = [make_result(256, center_s=2 * 256 * MIB / 3.6e12 * 0.9, seed=s) for s in range(10, 30)]
    new = [make_result(256, seed=s) for s in range(30, 45)]
    verdict = judge(make_side(256, history=(*old, *new)), make_side(256, seed=1))
    check(verdict, VerdictKind.NO_CHANGE, exits=ExitCode.OK)
    assert abs(verdict.effect) < 0.005
    assert "17 runs" in verdict.noise.source


def test_a_spike_in_the_history_neither_moves_the_level_nor_widens_the_noise() -> None:
    past = [make_result(256, seed=s) for s in range(10, 30)]
    spiky = [*past[:9], make_result(256, center_s=1e-3), *past[9:]]
    plain = judge(make_side(256, history=tuple(past)), make_side(256, seed=1))
    with_spike = judge(make_side(256, history=tuple(spiky)), make_side(256, seed=1))
    assert with_spike.effect == pytest.approx(plain.effect, abs=1e-4)
    assert with_spike.noise.sigma == pytest.approx(plain.noise.sigma, rel=0.05)


def _level(*odd: float) -> tuple[Any, ...]:
    """Return twenty quiet runs, and after them runs that are slower by a fraction."""
    steady = [make_result(256, seed=s) for s in range(10, 30)]
    usual_s = 2 * 256 * MIB / 3.6e12
    return (*steady, *(make_result(256, center_s=usual_s * (1 + o), seed=99) for o in odd))


def test_a_baseline_that_stands_out_alone_makes_no_gain_of_a_return_to_the_level() -> None:
    odd = make_side(256, 0.05, history=_level())
    back = judge(odd, make_side(256, seed=1))
    check(back, VerdictKind.NO_CHANGE, ReasonCode.ODD_BASELINE, exits=ExitCode.OK)
    assert abs(back.effect) < 0.005, "the effect is told against the level"
    assert "20 runs before" in back.reasons[0].message


def test_a_return_to_a_level_that_could_show_nothing_is_undecided() -> None:
    odd, back = make_side(256, 0.05, history=_level()), make_side(256, seed=1)
    seen = judge(odd, back).detectable
    blind = subject.judge(odd, back, Policy(resolution=0.9 * seen))
    check_undecided(blind, ReasonCode.TOO_NOISY)
    assert blind.detectable == seen
    assert "the 20 runs before" in blind.reasons[0].message
    sighted = subject.judge(odd, back, Policy(resolution=1.1 * seen))
    check(sighted, VerdictKind.NO_CHANGE, ReasonCode.ODD_BASELINE, exits=ExitCode.OK)


def test_a_loss_that_the_baseline_has_already_is_not_told_again() -> None:
    slow = make_side(256, 0.05, history=_level())
    verdict = judge(slow, make_side(256, 0.05, seed=1))
    check(verdict, VerdictKind.NO_CHANGE, ReasonCode.WITHIN_NOISE, exits=ExitCode.OK)


def test_a_loss_from_a_baseline_that_stands_out_is_told() -> None:
    fast = make_side(256, -0.05, history=_level())
    lost = judge(fast, make_side(256, 0.05, seed=1))
    check(lost, VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)


def test_a_repeated_baseline_is_believed_against_the_level_before_it() -> None:
    repeats = tuple(
        make_result(256, center_s=1.05 * 2 * 256 * MIB / 3.6e12, seed=s) for s in (5, 6)
    )
    base = make_side(256, 0.05, repeats=repeats, history=_level())
    check(judge(base, make_side(256, seed=1)), VerdictKind.IMPROVEMENT, exits=ExitCode.OK)


def test_what_strayed_before_is_measured_again_before_anyone_is_alarmed() -> None:
    spiky = (*_level()[:9], *_level(0.06)[-1:], *_level()[9:])
    base = make_side(256, history=spiky)
    once = judge(base, make_side(256, 0.06, seed=1))
    check_undecided(once, ReasonCode.SUSPICIOUS)
    assert "1 of 21 earlier runs strayed" in once.reasons[0].message
    assert once.more_runs == 2
    again = tuple(make_result(256, center_s=1.06 * 2 * 256 * MIB / 3.6e12, seed=s) for s in (7, 8))
    sure = judge(base, make_side(256, 0.06, seed=1, repeats=again))
    check(sure, VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)
    other_way = judge(base, make_side(256, -0.06, seed=1))
    check(other_way, VerdictKind.IMPROVEMENT, exits=ExitCode.OK)


@pytest.mark.parametrize(
    ("of_base", "of_head", "kind", "code"),
    [
        (0.06, 0.0, VerdictKind.NO_CHANGE, ReasonCode.ODD_BASELINE),
        (0.06, -0.006, VerdictKind.UNDECIDED, ReasonCode.SUSPICIOUS),
        (0.06, 0.03, VerdictKind.UNDECIDED, ReasonCode.SUSPICIOUS),
        (0.06, 0.15, VerdictKind.REGRESSION, ReasonCode.SIGNIFICANT),
        (-0.06, 0.03, VerdictKind.REGRESSION, ReasonCode.SIGNIFICANT),
    ],
)
def test_beside_an_odd_baseline_a_change_has_to_leave_the_level_too(
    of_base: Any, of_head: Any, kind: Any, code: Any
) -> None:
    base = make_side(256, of_base, seed=1, history=_level())
    verdict = judge(base, make_side(256, of_head, seed=2))
    assert verdict.kind is kind, verdict.reasons
    assert verdict.reasons[0].code is code
    assert kind is not VerdictKind.UNDECIDED or verdict.more_runs == 2
