"""Warm-up until clock and time stand still, and batches that fill."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import pytest

from perftests.harness.sampling import LARGEST_BATCH, Batch, Warmth, collect, warm_up
from perftests.harness.stop import StopRule


@dataclass
class Scripted:
    """A runner whose batches take these seconds a launch at these clocks; the last repeats."""

    seconds: list[float]
    clocks: list[float | None] = field(default_factory=lambda: [None])
    late: int = 0
    counts: list[int] = field(default_factory=list)
    timer: str = "scripted"
    rounds: int = 1

    def batch(self, count: int) -> Batch:
        turn = len(self.counts)
        self.counts.append(count)
        seconds = self.seconds[min(turn, len(self.seconds) - 1)]
        clock = self.clocks[min(turn, len(self.clocks) - 1)]
        late = self.late if count > 4 else 0
        return Batch([seconds] * (count - late), clock, late, count * seconds)

    def rest(self, count: int) -> None:
        raise AssertionError

    def once(self) -> None:
        raise AssertionError


def test_a_clock_that_ramps_is_waited_for() -> None:
    ramp = Scripted([1e-6], [1.0e9, 1.5e9, 1.9e9, 1.98e9, 1.98e9])
    assert warm_up(ramp, floor_s=0.0, cap_s=5.0).steady
    assert len(ramp.counts) == 5


def test_times_that_fall_are_waited_for() -> None:
    falling = Scripted([9e-6, 5e-6, 4e-6, 4e-6])
    assert warm_up(falling, floor_s=0.0, cap_s=5.0).steady
    assert len(falling.counts) == 4


def test_a_warm_up_tells_how_long_the_device_worked() -> None:
    steady = Scripted([4e-6], [1.98e9])
    warmth = warm_up(steady, floor_s=0.0, cap_s=1.0)
    assert warmth.busy_s == pytest.approx(4e-6 * sum(steady.counts))


def test_what_never_stands_still_is_cut_off_and_told() -> None:
    restless = Scripted([1e-6, 2e-6] * 10_000)
    assert not warm_up(restless, floor_s=0.0, cap_s=0.02).steady


def test_a_floor_is_kept_though_all_is_steady() -> None:
    steady = Scripted([1e-6], [1.98e9])
    assert warm_up(steady, floor_s=0.02, cap_s=1.0).steady
    assert len(steady.counts) > 2


def test_batches_without_a_valid_launch_are_not_steady() -> None:
    class Late(Scripted):
        def batch(self, count: int) -> Batch:
            return Batch([], None, count)

    assert not warm_up(Late([1e-6]), floor_s=0.0, cap_s=0.01).steady


def test_a_sample_pools_clocks_and_late_launches_and_leaves_the_collector_on() -> None:
    runner = Scripted([2e-6], [1.0e9, 2.0e9], late=1)
    looks: list[bool] = []
    rule = StopRule(min_samples=14, max_samples=14, max_seconds=5.0, target=0.0)
    sample = collect(runner, rule, halfway=lambda: looks.append(gc.isenabled()))
    assert len(sample.seconds) == 14
    late = [int(count > 4) for count in runner.counts]
    assert sample.late == sum(late) > 0
    weights = [count - gone for count, gone in zip(runner.counts, late, strict=True)]
    clocks = [1.0e9, *[2.0e9] * (len(weights) - 1)]
    pooled = sum(c * w for c, w in zip(clocks, weights, strict=True)) / sum(weights)
    assert sample.sm_clock_hz == pytest.approx(pooled)
    assert sample.busy_s == pytest.approx(2e-6 * sum(runner.counts))
    assert looks == [False]
    assert gc.isenabled()


@pytest.mark.parametrize(("filling", "first"), [(5, 5), (30, 30), (192, 30)])
def test_a_first_batch_has_the_fewest_samples_unless_these_would_overfill_it(
    filling: int, first: int
) -> None:
    """Smaller ones decide nothing, and between two the device waits."""
    runner = Scripted([2e-6])
    collect(runner, StopRule(), warmth=Warmth(True, batch=filling))
    assert runner.counts[0] == first


def test_a_batch_has_no_more_launches_than_the_largest() -> None:
    runner = Scripted([1e-9])
    rule = StopRule(min_samples=5000, max_samples=4000, max_seconds=5.0)
    assert collect(runner, rule).stop_reason == "sample cap"
    assert max(runner.counts) <= LARGEST_BATCH
