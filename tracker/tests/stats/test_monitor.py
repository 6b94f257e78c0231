"""The online rule, run by run."""

from collections.abc import Sequence
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracker.evaluate import noises
from tracker.model import VerdictKind
from tracker.reasons import ReasonCode
from tracker.stats.monitor import Monitor, MonitorVerdict

SEED = 20


def clean(runs: int = 40, seed: int = SEED, sigma: float = 0.01) -> list[float]:
    return list(100 * (1 + sigma * np.random.default_rng(seed).standard_normal(runs)))


def feed(monitor: Monitor, values: Sequence[float | None]) -> list[MonitorVerdict]:
    return [monitor.update(value) for value in values]


def kinds(verdicts: Sequence[MonitorVerdict]) -> set[str]:
    return {str(v.kind) for v in verdicts}


def test_a_clean_series_is_no_change_once_it_has_a_level() -> None:
    verdicts = feed(Monitor(), clean())
    assert {v.reasons[0].code for v in verdicts[:12]} == {ReasonCode.TOO_LITTLE_HISTORY}
    assert "regression" not in kinds(verdicts)
    assert sum(v.kind is VerdictKind.NO_CHANGE for v in verdicts[12:]) >= 25


def test_a_lasting_drop_is_a_regression_within_five_runs_and_its_first_run_is_named() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    verdicts = feed(monitor, [v * 0.95 for v in clean(5, seed=1)])
    called = [v for v in verdicts if v.kind is VerdictKind.REGRESSION]
    assert len(called) == 1
    assert called[0].change_at in {39, 40}
    assert called[0].effect == pytest.approx(-0.05, abs=0.015)
    assert called[0].interval is not None
    assert called[0].interval[0] < -0.05 < called[0].interval[1] < 0


def test_a_rise_is_an_improvement_and_for_times_it_is_a_regression() -> None:
    values = [*clean(), *(v * 1.06 for v in clean(5, seed=1))]
    assert "improvement" in kinds(feed(Monitor(), values))
    assert "regression" in kinds(feed(Monitor(higher_is_better=False), values))


def test_after_a_drop_the_new_level_is_quiet_and_a_return_is_an_improvement() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    low = feed(monitor, [v * 0.9 for v in clean(30, seed=1)])
    assert sum(v.kind is VerdictKind.REGRESSION for v in low) == 1
    assert "improvement" in kinds(feed(monitor, clean(8, seed=2)))


@pytest.mark.parametrize("bad", [None, nan, inf, -inf, -1.0])
def test_what_is_no_measurement_is_undecided_and_changes_nothing(bad: float | None) -> None:
    with_hole, without = Monitor(), Monitor()
    feed(with_hole, clean(30))
    feed(without, clean(30))
    verdict = with_hole.update(bad)
    assert (verdict.kind, verdict.reasons[0].code) == (VerdictKind.UNDECIDED, ReasonCode.NOT_FINITE)
    assert with_hole.update(101.0) == without.update(101.0)


def test_a_drop_to_zero_is_a_regression_at_once() -> None:
    monitor = Monitor()
    feed(monitor, clean(20))
    verdict = monitor.update(0.0)
    assert verdict.kind is VerdictKind.REGRESSION
    assert verdict.effect == -1
    assert verdict.reasons[0].code is ReasonCode.DROP_TO_ZERO
    assert Monitor(higher_is_better=False).update(0.0).kind is VerdictKind.UNDECIDED


@pytest.mark.parametrize("drop", [0.0002, 0.01, 0.5])
def test_without_noise_any_drop_above_the_resolution_is_found_at_once(drop: float) -> None:
    monitor = Monitor()
    feed(monitor, [100.0] * 20)
    assert monitor.update(100.0).kind is VerdictKind.NO_CHANGE
    assert monitor.update(100.0 * (1 - drop)).kind is VerdictKind.REGRESSION


def test_without_noise_a_step_below_the_resolution_is_no_change() -> None:
    monitor = Monitor(resolution=1e-3)
    feed(monitor, [100.0] * 20)
    assert monitor.update(99.95).kind is VerdictKind.NO_CHANGE


def test_one_bad_run_is_suspicious_and_no_regression() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    verdict = monitor.update(80.0)
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons[0].code is ReasonCode.SUSPICIOUS
    assert "regression" not in kinds(feed(monitor, clean(20, seed=3)))


def test_two_bad_runs_are_no_regression_three_are() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    assert "regression" not in kinds(feed(monitor, [90.0, 90.5]))
    assert "regression" in kinds(feed(monitor, [89.5, 90.2, 90.1]))


def test_a_steady_drift_is_told_and_no_regression() -> None:
    values = [v - 0.08 * i for i, v in enumerate(clean(60, sigma=0.003))]
    verdicts = feed(Monitor(), values)
    assert "regression" not in kinds(verdicts)
    assert verdicts[-1].reasons[0].code is ReasonCode.DRIFT


def test_a_change_below_the_minimal_effect_is_not_called() -> None:
    values = [*clean(sigma=0.0002), *(v * 0.997 for v in clean(10, seed=1, sigma=0.0002))]
    assert "regression" not in kinds(feed(Monitor(), values))
    assert "regression" in kinds(feed(Monitor(minimal_effect=0.001), values))


def test_a_suspicious_run_is_measured_again_and_a_real_loss_confirmed_at_once() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    asked = []

    def again(count: int) -> list[float]:
        asked.append(count)
        return [95.0 + 0.1 * len(asked)] * count

    verdict = monitor.update(95.0, again)
    assert verdict.kind is VerdictKind.REGRESSION
    assert {r.code for r in verdict.reasons} >= {ReasonCode.CONFIRMED, ReasonCode.SIGNIFICANT}
    assert sum(asked) == len(verdict.repeats) <= 4
    assert verdict.change_at == 40


def test_a_spike_is_measured_again_and_dismissed() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    verdict = monitor.update(85.0, lambda count: [100.0] * count)
    assert verdict.kind is VerdictKind.NO_CHANGE
    assert verdict.reasons[0].code is ReasonCode.DISMISSED


def test_an_ordinary_run_is_not_measured_again() -> None:
    monitor = Monitor()
    feed(monitor, clean())

    def never(count: int) -> list[float]:
        raise AssertionError(count)

    assert monitor.update(100.0, never).kind is VerdictKind.NO_CHANGE


def test_repeats_that_fail_leave_the_run_undecided() -> None:
    monitor = Monitor()
    feed(monitor, clean())
    assert monitor.update(95.0, lambda _: []).kind is VerdictKind.UNDECIDED
    assert monitor.update(95.0, lambda count: [nan] * count).kind is VerdictKind.UNDECIDED


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-9, 1e9), st.floats(0.85, 1.15))
def test_the_unit_of_the_values_does_not_matter(seed: int, unit: float, move: float) -> None:
    values = [*clean(30, seed), *(v * move for v in clean(6, seed + 1))]
    plain = [v.kind for v in feed(Monitor(), values)]
    assert [v.kind for v in feed(Monitor(), [v * unit for v in values])] == plain


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.85, 1.15))
@example(19237, 1.0)
def test_up_for_times_is_down_for_bandwidths(seed: int, move: float) -> None:
    """What is called is; whether nothing changed is told in shares of a level, which is another."""
    values = [*clean(30, seed), *(v * move for v in clean(6, seed + 1))]
    mirrored = [200 - v for v in values]
    quiet = {VerdictKind.NO_CHANGE, VerdictKind.UNDECIDED}

    def called(monitor: Monitor, values: list[float]) -> list[VerdictKind | None]:
        return [None if v.kind in quiet else v.kind for v in feed(monitor, values)]

    plain = called(Monitor(minimal_effect=0), values)
    assert called(Monitor(False, minimal_effect=0), mirrored) == plain


def test_a_long_history_is_forgotten_run_by_run() -> None:
    monitor = Monitor(remember=60)
    feed(monitor, clean(300))
    verdicts = feed(monitor, [v * 0.94 for v in clean(5, seed=1)])
    (change,) = [v.change_at for v in verdicts if v.change_at is not None]
    assert change in {299, 300}


@pytest.mark.parametrize("noise", list(noises.NOISES.values()))
def test_a_drop_of_five_noise_sds_is_found_within_five_runs(noise: noises.Noise) -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for row in 100 * (1 + 0.01 * noise(rng, 25, 45)):
        monitor = Monitor()
        verdicts = feed(monitor, [*row[:40], *(0.95 * row[40:])])
        hits += VerdictKind.REGRESSION in [v.kind for v in verdicts[40:]]
    assert hits >= 20
