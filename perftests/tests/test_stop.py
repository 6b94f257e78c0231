"""The stop rule on samples of known noise."""

from __future__ import annotations

import numpy as np
import pytest

from perftests.harness.stop import (
    PRECISE,
    SAMPLE_CAP,
    SETTLED,
    TIME_CAP,
    Stopper,
    StopRule,
    relative_error,
)

RULE = StopRule(target=1e-3, min_samples=30, settle_samples=100, max_samples=2000, max_seconds=10.0)


def grown(
    noise: float, rule: StopRule, *, step: int = 10, seconds_each: float = 0.0, seed: int = 7
) -> tuple[str, int]:
    """Feed batches of a normal sample around 1 s until the rule stops it."""
    random = np.random.default_rng(seed)
    data = 1.0 + noise * random.standard_normal(10_000)
    stopper = Stopper(rule)
    for count in range(step, len(data), step):
        reason = stopper.decide(data[:count], count * seconds_each)
        if reason is not None:
            return reason, count
    raise AssertionError("the rule never stopped")


def test_the_relative_error_is_that_of_a_normal_median() -> None:
    """Over many samples, the estimate agrees with the medians' own spread."""
    random = np.random.default_rng(3)
    samples = 1.0 + 0.05 * random.standard_normal((4000, 100))
    spread = np.median(samples, axis=1).std()
    estimate = np.mean([relative_error(sample) for sample in samples])
    assert estimate == pytest.approx(spread, rel=0.05)


def test_a_quiet_sample_stops_at_the_floor() -> None:
    assert grown(1e-6, RULE) == (PRECISE, 30)


def test_a_noisier_sample_goes_on_until_it_is_precise() -> None:
    """Looking often stops a little early; the medians' true spread stays near the target."""
    random = np.random.default_rng(11)
    medians = []
    for _ in range(300):
        data = 1.0 + 0.01 * random.standard_normal(2000)
        stopper = Stopper(RULE)
        count = next(n for n in range(10, 2001, 10) if stopper.decide(data[:n], 0.0))
        medians.append(np.median(data[:count]))
    assert 0.7e-3 <= np.std(medians) <= 1.3e-3


def test_steady_noise_settles_before_it_is_precise() -> None:
    reason, count = grown(0.06, RULE, step=50)
    assert reason == SETTLED
    data = 1.0 + 0.06 * np.random.default_rng(7).standard_normal(count)
    assert 1e-3 < relative_error(data) <= 4e-3


def test_noise_that_is_steady_from_the_start_settles_at_its_floor() -> None:
    """A relative standard error of 1.39e-3 at 64 values, 1.11e-3 at 100, below 1e-3 from 124 on."""
    stopper, data = Stopper(RULE), np.tile([0.994, 1.006], 100)
    decided = {count: stopper.decide(data[:count], 0.0) for count in range(10, 101, 10)}
    assert {count for count, reason in decided.items() if reason is not None} == {100}
    assert decided[100] == SETTLED
    assert Stopper(RULE).decide(data[:130], 0.0) == PRECISE


def test_noise_that_leaves_the_median_far_from_the_target_does_not_count_as_settled() -> None:
    assert grown(0.5, RULE, step=50) == (SAMPLE_CAP, 2000)


def test_the_sample_cap_stops_what_never_settles() -> None:
    rule = StopRule(target=1e-9, min_samples=30, settle_samples=10**6, max_samples=200)
    assert grown(0.1, rule) == (SAMPLE_CAP, 200)


def test_the_time_cap_holds_even_below_the_floor() -> None:
    rule = StopRule(target=1e-9, min_samples=30, max_seconds=0.5)
    assert grown(0.1, rule, seconds_each=0.05) == (TIME_CAP, 10)


def test_one_stray_sample_does_not_keep_the_run_going() -> None:
    data = np.full(30, 1.0)
    data[3] = 50.0
    assert Stopper(RULE).decide(data, 0.0) == PRECISE


@pytest.mark.parametrize("sample", [[], [1.0]])
def test_too_few_samples_have_no_error(sample: list[float]) -> None:
    assert relative_error(sample) == float("inf")


def test_an_error_below_the_resolution_is_precise_whatever_the_target() -> None:
    """10 ns of 4.4 us are 0.23 %: a longer sample of so short a launch tells nothing new."""
    random = np.random.default_rng(5)
    short = 4.4e-6 * (1 + 0.035 * random.standard_normal(600))
    rule = StopRule(target=5e-4, resolution_s=1e-8)
    assert rule.target_at(4.4e-6) == pytest.approx(1 / 440)
    assert rule.target_at(1e-3) == 5e-4
    assert Stopper(rule).decide(short, 0.0) == PRECISE
    assert Stopper(StopRule(target=5e-4)).decide(short, 0.0) is None


def test_noise_has_settled_when_it_looked_alike_in_six_batches() -> None:
    stopper = Stopper(RULE)
    noises = [0.008] * 3 + [0.006] * 6
    decided = [stopper.decide(np.tile([1 - a, 1 + a], 50), 0.0) for a in noises]
    assert decided == [None] * 8 + [SETTLED]


def test_times_of_zero_are_never_precise() -> None:
    """A timer that shows no time has not seen the work; the summary refuses such a sample."""
    assert relative_error([0.0] * 3) == float("inf")
    rule = StopRule(target=1e-3, resolution_s=7e-9, max_samples=50)
    assert Stopper(rule).decide(np.zeros(40), 0.0) is None
    assert Stopper(rule).decide(np.zeros(50), 0.0) == SAMPLE_CAP
