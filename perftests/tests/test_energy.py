"""Energy from a counter that moves in steps, against known powers."""

from __future__ import annotations

import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from perftests.harness import energy
from perftests.harness.chain import measure
from perftests.harness.energy import (
    EnergyError,
    Power,
    Step,
    as_record,
    measure_energy,
    power,
    watch_beside,
    watch_counter,
)
from perftests.harness.record import Findings
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests.workloads import relu_workload


class Device:
    """Draws `watts`; its counter shows the true energy of the last multiple of `step_s`."""

    def __init__(self, watts: float, step_s: float = 0.1, poll_s: float = 0.005) -> None:
        self.watts, self.step_s, self.poll_s = watts, step_s, poll_s
        self.now = 10.0

    def clock(self) -> float:
        return self.now

    def work(self) -> None:
        self.now += self.poll_s

    def read(self) -> float:
        return self.watts * self.step_s * int(self.now / self.step_s)


def watched(device: Device) -> Power:
    return watch_counter(device.read, device.work, clock=device.clock)


def test_the_power_is_right_within_its_error_though_the_counter_moves_in_steps() -> None:
    found = watched(Device(470.0))
    assert found.window_s >= 1.0, "NVML's readings are means over about a second"
    assert found.steps >= 4
    assert abs(found.watts - 470.0) <= 3 * found.error_w
    assert 0 < found.error_w < 0.02 * 470.0


def test_a_counter_of_rare_steps_is_watched_for_long_enough_within_the_limit() -> None:
    slow = watched(Device(470.0, step_s=0.9))
    assert slow.steps == 4
    assert slow.window_s == pytest.approx(2.7, abs=0.02)
    with pytest.raises(EnergyError, match="moved 2 times in 5 s"):
        watched(Device(470.0, step_s=2.0))


def test_rarer_polls_make_the_error_larger() -> None:
    assert watched(Device(470.0, poll_s=0.03)).error_w > watched(Device(470.0)).error_w


def test_a_counter_that_stands_still_is_an_error() -> None:
    with pytest.raises(EnergyError, match="moved 0 times in 5 s"):
        watched(Device(0.0))


def test_a_slow_reading_leaves_no_gap_between_two_calls() -> None:
    calls: list[float] = []

    def read() -> float:
        time.sleep(0.008)  # as NVML takes
        return 400.0 * 0.01 * int(time.perf_counter() / 0.01)

    def work() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.001)

    found = watch_beside(read, work, window_s=0.1)
    assert found.watts == pytest.approx(400, rel=0.2)
    gaps = sorted(after - before for before, after in pairwise(calls))
    assert gaps[len(gaps) // 2] < 0.004


def test_a_counter_that_fails_beside_the_work_ends_it() -> None:
    def read() -> float:
        raise EnergyError("refused")

    with pytest.raises(EnergyError, match="refused"):
        watch_beside(read, lambda: time.sleep(0.001))


def test_the_scatter_of_the_steps_enters_the_error() -> None:
    steady = [Step(100.0 * k, float(k), 0.0) for k in range(5)]
    assert power(steady) == Power(100.0, 0.0, 4.0, 5)
    uneven = [Step(j, float(k), 0.0) for k, j in enumerate((0.0, 90.0, 200.0, 290.0, 400.0))]
    # powers 90, 110, 90, 110: standard deviation 11.547, over sqrt(4)
    assert power(uneven).error_w == pytest.approx(5.7735, rel=1e-4)


def test_idle_is_subtracted_and_the_errors_are_joined() -> None:
    loaded, idle = Power(500.0, 3.0, 0.6, 7), Power(100.0, 4.0, 0.6, 7)
    found = as_record(loaded, idle, launches_per_s=2000.0, bytes_moved=10**9, flop=10**8)
    assert found["j_per_gb"] == pytest.approx(400 / 2000)
    assert found["j_per_gb_error"] == pytest.approx(400 / 2000 * 5 / 400)
    assert found["gflops_per_w"] == pytest.approx(200 / 400)
    assert found["gflops_per_w_error"] == pytest.approx(0.5 * 5 / 400)
    assert found["idle_power_w"] == 100.0


def test_a_load_that_draws_no_more_than_idle_has_no_energy() -> None:
    same = Power(100.0, 1.0, 0.6, 7)
    with pytest.raises(EnergyError, match="no more than"):
        as_record(same, same, launches_per_s=1.0, bytes_moved=1, flop=0)


def test_a_cpu_says_why_it_tells_no_energy_and_is_timed_all_the_same() -> None:
    session = Session(Settings(max_seconds=0.02, max_samples=8, energy=True))
    outcome = measure(relu_workload(), session)
    assert outcome.broken is None
    assert outcome.seconds
    assert outcome.result["energy"] is None
    assert "a CPU has no energy counter" in outcome.result["reasons"]["energy"]


@pytest.mark.parametrize(
    ("mode", "moved", "told"),
    [
        ("cold", 1 << 20, True),
        ("hot", 1 << 20, True),
        ("rotated", 1 << 20, False),
        ("cold", (1 << 20) + 1, False),
    ],
)
def test_a_case_that_fits_into_the_cache_is_marked(
    mode: str, moved: int, *, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(energy, "_measured", lambda *_: {"j_per_gb": 0.05})
    found = Findings(relu_workload(bytes_moved=moved), mode)
    bench: Any = SimpleNamespace(device=SimpleNamespace(cache_bytes=1 << 20))
    measure_energy(found, bench, [], 1e-5)
    assert found.energy == {"j_per_gb": 0.05}
    assert ("energy_from_cache" in found.warnings) is told


@pytest.mark.gpu
def test_a_gpu_tells_the_energy_of_a_gigabyte(gpu: str) -> None:
    session = Session(Settings(max_seconds=0.02, energy=True))
    outcome = measure(relu_workload(n=1 << 26, device=gpu), session)
    assert outcome.broken is None
    energy = outcome.result["energy"]
    if energy is None:
        pytest.skip(outcome.result["reasons"]["energy"])
    assert energy["power_w"] > energy["idle_power_w"] > 0
    assert 0.01 < energy["j_per_gb"] < 1.0  # HBM costs a few pJ a bit, the rest of the chip as much
    assert energy["j_per_gb_error"] < 0.2 * energy["j_per_gb"]
