"""A quick version of the error rates, with bounds wide enough for few series."""

import numpy as np
import pytest

from tracker.evaluate import noises, protocol
from tracker.evaluate.protocol import (
    OLD,
    YOUNG,
    false_alarms,
    false_changes,
    found,
    noticed,
    placed,
    retracted,
    suites,
    values,
    watch,
)
from tracker.evaluate.synthetic import Figure, figures
from tracker.model import VerdictKind
from tracker.stats.monitor import Monitor
from tracker.stats.shift import scan


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_gaussian_series_hardly_alarm_and_small_drops_are_found() -> None:
    assert false_alarms(noises.gaussian, rng(), 1200) <= 0.035
    assert found(noises.gaussian, rng(), 1200, 0.02)[-1] >= 0.72


@pytest.mark.parametrize("name", list(noises.NOISES))
def test_no_noise_alarms_often_and_large_drops_are_found(name: str) -> None:
    noise = noises.NOISES[name]
    assert false_alarms(noise, rng(), 500) <= 0.16
    assert found(noise, rng(), 500, 0.05)[-1] >= 0.9


def test_measuring_again_finds_at_the_first_run_for_few_extra_runs() -> None:
    watched = watch(noises.gaussian, rng(), 15, remeasure=True)
    assert watched.false_alarms <= 0.09
    assert watched.extra_runs <= 0.12
    assert watched.asked <= watched.extra_runs
    assert noticed(noises.gaussian, rng(), 40, 0.05, remeasure=True)[0] >= 0.95
    assert noticed(noises.gaussian, rng(), 40, 0.02, remeasure=True)[0] >= 0.3


def test_steps_are_placed_and_clean_series_show_none() -> None:
    place = placed(noises.gaussian, rng(), 300, 0.02)
    assert place.exact >= 0.54
    assert place.within_two >= 0.88
    assert false_changes(noises.gaussian, rng(), 300)[0] <= 0.03
    assert false_changes(noises.autocorrelated, rng(), 300)[0] <= 0.08


def test_a_suite_calls_the_case_that_fell_and_no_other() -> None:
    assert suites(noises.gaussian, rng(), 5, drop=0.2) == (0.0, 1.0)
    assert suites(noises.spikes, rng(), 3) == (0.0, 0.0)


def test_told_changes_are_seldom_retracted() -> None:
    told, gone = retracted(noises.gaussian, rng(), 6, 0.05)
    assert told >= 1
    assert gone <= 0.5


def test_the_scan_of_many_series_is_the_monitors_rule() -> None:
    rows = values(noises.gaussian(rng(), 12, OLD))
    rows[:, 60:] *= 0.96
    for row in rows:
        monitor = Monitor(minimal_effect=0)
        for runs in range(1, OLD + 1):
            verdict = monitor.update(float(row[runs - 1]))
            if runs <= YOUNG:
                continue
            loss, gain = scan(row[None, :runs])
            assert (verdict.kind is VerdictKind.REGRESSION) == loss[0]
            assert (verdict.kind is VerdictKind.IMPROVEMENT) == gain[0]
            if loss[0] or gain[0]:
                break


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (list(zip(range(6), figures(3, 10), strict=False)) for _ in range(2))
    assert first == second


def test_a_goal_is_met_from_the_right_side() -> None:
    def met(value: float, **goal: float) -> bool | None:
        return Figure("rule", "noise", "what", value, 1, **goal).met  # type: ignore[arg-type]

    assert met(0.5) is None
    assert (met(0.01, most=0.02), met(0.03, most=0.02)) == (True, False)
    assert (met(0.8, least=0.75), met(0.7, least=0.75)) == (True, False)


@pytest.mark.parametrize(
    "name", ["downward spikes", "heavy tails, t(3)", "uneven, waves 0.3-1.7 %"]
)
def test_an_unchanged_suite_calls_nothing_where_runs_stray(name: str) -> None:
    # One suite in a hundred may; by Student's t alone one in five to ten would.
    assert suites(noises.NOISES[name], rng(), 25)[0] <= 1 / 25


def test_a_young_suite_calls_no_spike(monkeypatch: pytest.MonkeyPatch) -> None:
    # Six runs are no level, and sharpen the noise all the same: nearly every suite had a call.
    monkeypatch.setattr(protocol, "YOUNG", 7)
    assert suites(noises.spikes, rng(), 15)[0] <= 1 / 15
