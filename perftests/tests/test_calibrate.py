"""Yardsticks: once a size and mode, the faster copy, the data sheet's formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftests.harness.calibrate import (
    Calibrator,
    round_size,
    theoretical_bandwidth,
    theoretical_flops,
)
from perftests.harness.cpu import CpuDevice
from perftests.harness.stop import StopRule

if TYPE_CHECKING:
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
