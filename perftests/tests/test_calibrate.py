"""Yardsticks: once a size and mode, the faster copy, the data sheet's formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.arena import Arena
from perftests.harness.calibrate import (
    Calibrator,
    round_size,
    theoretical_bandwidth,
    theoretical_flops,
)
from perftests.harness.cpu import CpuDevice
from perftests.harness.sampling import Batch
from perftests.harness.stop import StopRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.sampling import Runner

RULE = StopRule(target=0.1, min_samples=3, max_samples=3, max_seconds=0.01)


def calibrator() -> Calibrator:
    return Calibrator(CpuDevice(), RULE)


def test_a_size_is_measured_once_and_shared_by_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yardstick = calibrator()
    first = yardstick.copy(1 << 20, "hot")
    monkeypatch.setattr(yardstick, "_median", lambda _runner: pytest.fail("measured again"))
    assert yardstick.copy(1 << 20, "hot") == first
    assert yardstick.copy((1 << 20) - 8, "hot") == first


def test_another_mode_or_size_is_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    yardstick = calibrator()
    seen = []

    def noted(runner: Runner) -> float:
        seen.append(runner.timer)
        return 1e-3

    monkeypatch.setattr(yardstick, "_median", noted)
    yardstick.copy(1 << 20, "hot")
    yardstick.copy(1 << 20, "cold")
    yardstick.copy(1 << 21, "hot")
    assert seen == ["host_clock_hot"] * 2 + ["host_clock_cold"] * 2 + ["host_clock_hot"] * 2


def test_the_rate_counts_every_array(monkeypatch: pytest.MonkeyPatch) -> None:
    yardstick = calibrator()
    monkeypatch.setattr(yardstick, "_median", lambda _runner: 1e-3)
    rate, source = yardstick.copy(1 << 20, "hot")
    assert rate == pytest.approx((1 << 20) / 1e-3)
    assert source == "torch copy_"
    assert yardstick.two_read(3 << 20, "hot") == pytest.approx((3 << 20) / 1e-3)


@pytest.mark.parametrize("size", [1, 511, 1000, 12_345, (1 << 26) - 4, 1 << 30, 3 << 28])
def test_a_rounded_size_is_near_and_aligned(size: int) -> None:
    rounded = round_size(size)
    assert rounded % 512 == 0
    assert rounded == pytest.approx(size, rel=0.01, abs=512)


def test_the_empty_launch_is_measured() -> None:
    assert 0 < calibrator().floor_s("hot") < 1e-3


def test_theoretical_rates_of_known_cards() -> None:
    """H200: 6144 bits at 3201 MHz; P100: 4096 bits at 715 MHz, 732 GB/s by its data sheet."""
    assert theoretical_bandwidth(3201e6, 6144) == pytest.approx(4.917e12, rel=1e-3)
    assert theoretical_bandwidth(715e6, 4096) == pytest.approx(732e9, rel=1e-3)
    # A100: 108 multiprocessors at 1410 MHz, 19.5 TFLOP/s by its data sheet.
    assert theoretical_flops((8, 0), 108, 1.41e9) == pytest.approx(19.5e12, rel=2e-3)
    assert theoretical_flops((99, 0), 108, 1.41e9) is None


class Scripted(CpuDevice):
    """A CPU of some places whose runner keeps the launches, in turn faster and slower."""

    def __init__(self, took_s: list[float], sets: int = 3) -> None:
        super().__init__()
        self.took_s, self.sets = took_s, sets
        self.given: list[Sequence[Any]] = []
        self.arena = Arena(1 << 25, self.device)

    def sets_needed(self, mode: str, set_bytes: int) -> int:
        return self.sets

    def runner(self, mode: str, launches: Sequence[Any], *, streams: bool = True) -> Runner:
        self.given.append(launches)
        took = self.took_s[len(self.given) - 1]

        class Steady:
            timer, rounds, warm = "scripted", 1, False

            def batch(self, count: int) -> Batch:
                # the first is not warm yet, and one launch in five is held up
                slow, self.warm = (1 if self.warm else 1000), True
                return Batch([took * slow * (100 if i % 5 == 4 else 1) for i in range(count)])

            def rest(self, count: int) -> None:
                raise AssertionError

            def once(self) -> None:
                raise AssertionError

        return Steady()


@pytest.mark.parametrize(
    ("took_s", "source"), [([2e-3, 1e-3], "numpy copyto"), ([1e-3, 2e-3], "torch copy_")]
)
def test_the_fastest_copy_counts_by_its_median_once_it_is_warm(
    took_s: list[float], source: str
) -> None:
    device = Scripted(took_s)
    rule = StopRule(target=0.1, min_samples=5, max_samples=5, max_seconds=0.01)
    rate, named = Calibrator(device, rule).copy(1 << 20, "cold")
    assert named == source
    assert rate == pytest.approx((1 << 20) / 1e-3)


def test_the_empty_launch_is_measured_in_each_mode() -> None:
    calibrator = Calibrator(Scripted([1e-6, 2e-6]), RULE)
    assert [calibrator.floor_s(mode) for mode in ("hot", "cold", "hot")] == [1e-6, 2e-6, 1e-6]


def test_copies_go_through_as_many_places_as_results_and_give_them_back() -> None:
    device = Scripted([1e-3] * 5)
    calibrator = Calibrator(device, RULE)
    calibrator.copy(1 << 20, "cold")
    calibrator.two_read(3 << 18, "cold")
    assert [len(launches) for launches in device.given] == [3, 3, 3]
    copies, _, sums = device.given
    pairs = [(launch.func.__self__, *launch.args) for launch in copies]
    addresses = [tensor.data_ptr() for pair in pairs for tensor in pair]
    assert len(set(addresses)) == 6
    assert {tensor.nbytes for pair in pairs for tensor in pair} == {1 << 19}
    summed = [tensor.data_ptr() for launch in sums for tensor in launch.args]
    assert min(summed) == min(addresses), "the arena's region was given back"


def test_a_copy_is_not_equally_far_from_its_source_at_all_places() -> None:
    device = Scripted([1e-3] * 5, sets=16)
    Calibrator(device, RULE).copy(1 << 20, "cold")
    pairs = [(launch.func.__self__, *launch.args) for launch in device.given[0]]
    assert len({target.data_ptr() - source.data_ptr() for target, source in pairs}) >= 8


def test_yardsticks_are_sampled_by_a_looser_rule_than_results() -> None:
    seen = Calibrator(CpuDevice(), StopRule(target=1e-3, resolution_s=7e-9, max_seconds=0.3))._rule
    assert (seen.target, seen.resolution_s) == (2e-3, 14e-9)
    assert seen.max_seconds == pytest.approx(0.1)
    quick = Calibrator(CpuDevice(), StopRule(max_seconds=0.01))._rule
    assert quick.max_seconds == 0.03, "long enough for a median"
