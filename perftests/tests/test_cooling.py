"""A case that was throttled waits for the device and is sampled once more. No GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from perftests.harness import cooling
from perftests.harness.cooling import cool_down
from perftests.harness.record import Findings
from perftests.harness.settings import QUICK_SHARE, Settings
from perftests.harness.state import Watch
from perftests.harness.timing import Timed, time_workload
from perftests.tests import test_timing
from perftests.tests.fake_nvml import FakeNvml
from perftests.tests.test_timing import Device, FakeBench
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.session import Bench

_no_allocations = test_timing._no_allocations
IDLE, POWER_CAP, HOT = 0x1, 0x4, 0x40
HIGHEST_MHZ = 1980


@dataclass
class Nvml(FakeNvml):
    """Says what slows the device down, and its SM clock in MHz, by the time without work."""

    reasons: Callable[[float], int] = lambda _rested: 0
    clock_mhz: Callable[[float], int] = lambda _rested: HIGHEST_MHZ
    rested_s: float = 0.0
    rests: list[float] = field(default_factory=list)

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlDeviceGetCurrentClocksEventReasons":
            return self.reasons(self.rested_s)
        if name == "nvmlDeviceGetClockInfo" and arguments[1] == self.NVML_CLOCK_SM:
            return self.clock_mhz(self.rested_s)
        return super().answer(name, arguments)

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.rested_s += seconds


def bench_on(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, left_s: float = 12.0, **device: Any
) -> FakeBench:
    """Return a bench whose device rests on a clock of its own."""
    monkeypatch.setattr(cooling, "monotonic", lambda: nvml.rested_s)
    monkeypatch.setattr(cooling, "sleep", nvml.sleep)
    watch = Watch(handle="handle", nvml=nvml)
    return FakeBench(Device(lambda _: 1e-5, **device), watch, cooling_left_s=left_s)


def sampled(bench: FakeBench) -> tuple[Findings, Timed, int]:
    """Return what is found of a case, and how often its buffers were poisoned for a sample."""
    found, poisoned = Findings(relu_workload(bytes_moved=8_000_000), "cold"), []
    timed = time_workload(
        found, cast("Bench", bench), [lambda: None], lambda: poisoned.append(True)
    )
    timed.accept(found)
    return found, timed, len(poisoned)


def test_a_calm_case_is_sampled_once_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = Nvml()
    found, _, samples = sampled(bench_on(nvml, monkeypatch))
    assert (found.status, samples, nvml.rests) == ("ok", 1, [])
    assert "cooled_down" not in found.warnings


def test_a_case_is_sampled_again_as_soon_as_the_device_no_longer_slows_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = Nvml(reasons=lambda rested: POWER_CAP if rested < 0.33 else 0)
    bench = bench_on(nvml, monkeypatch)
    found, timed, samples = sampled(bench)
    assert (found.status, samples) == ("ok", 2)
    assert nvml.rested_s == pytest.approx(0.35)
    assert "after 0.35 s without work" in found.warnings["cooled_down"]
    assert "sampled again" in found.warnings["cooled_down"]
    assert "throttled" not in found.warnings, "that was the sample that was dropped"
    assert [state.throttle_reasons for state in found.states.values() if state] == [()] * 3
    assert found.walls["loop"] > timed.sample.loop_s, "both samples count against the budget"
    assert bench.cooling_left_s == pytest.approx(12.0 - 0.35)


def test_a_case_that_slows_the_device_each_time_stays_throttled_after_one_more_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cap is over when the device rests, and back with the work of the second sample."""
    nvml = Nvml(reasons=lambda _rested: POWER_CAP)
    bench = bench_on(nvml, monkeypatch)
    monkeypatch.setattr(cooling, "_is_over", lambda *_: nvml.rested_s > 0)
    found, _, samples = sampled(bench)
    assert (found.status, samples) == ("throttled", 2)
    assert "sw_power_cap" in found.warnings["throttled"]
    assert "slowed itself once more" in found.warnings["cooled_down"]
    waited = nvml.rested_s
    found, _, samples = sampled(bench)
    assert (samples, nvml.rested_s) == (1, waited), "what helps nobody is not done for each case"


def test_a_device_that_stays_slow_costs_the_session_one_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = Nvml(reasons=lambda _rested: HOT | IDLE)
    bench = bench_on(nvml, monkeypatch)
    found, _, samples = sampled(bench)
    assert (found.status, samples) == ("throttled", 1)
    assert nvml.rested_s == pytest.approx(3.0, abs=0.06)
    assert "still slowed itself: not sampled again" in found.warnings["cooled_down"]
    assert "hw_thermal_slowdown" in found.warnings["throttled"]
    waited = nvml.rested_s
    found, _, samples = sampled(bench)
    assert (found.status, samples, nvml.rested_s) == ("throttled", 1, waited)
    assert "cooled_down" not in found.warnings


def test_without_nvml_a_slow_clock_is_told_and_nothing_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_on(Nvml(), monkeypatch, clock_hz=1.2e9)
    monkeypatch.setattr(cooling, "sleep", lambda _s: pytest.fail("waited"))
    bench.watch = Watch(absent="NVML is absent")
    found, _, samples = sampled(bench)
    assert (found.status, samples) == ("throttled", 1)
    assert "slow_clock" in found.warnings
    assert "cooled_down" not in found.warnings


def test_a_clock_has_to_be_back_unless_the_device_lowers_it_for_want_of_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = Nvml(clock_mhz=lambda rested: 1200 if rested < 0.12 else 1500)
    told = cool_down(cast("Bench", bench_on(nvml, monkeypatch)))
    assert told is not None
    assert told.is_over
    assert told.waited_s == pytest.approx(0.15)
    idle = Nvml(clock_mhz=lambda _rested: 345, reasons=lambda _rested: IDLE)
    told = cool_down(cast("Bench", bench_on(idle, monkeypatch)))
    assert told is not None
    assert (told.is_over, told.waited_s) == (True, 0.0)


def test_a_session_waits_no_longer_than_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(reasons=lambda _rested: POWER_CAP)
    told = cool_down(cast("Bench", bench_on(nvml, monkeypatch, left_s=0.2)))
    assert told is not None
    assert told.waited_s == pytest.approx(0.2, abs=0.06)
    assert cool_down(cast("Bench", bench_on(nvml, monkeypatch, left_s=0.0))) is None
    assert Settings(quick=True).cooling_s == QUICK_SHARE * Settings().cooling_s


def test_nothing_is_ever_set(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(reasons=lambda rested: HOT if rested < 1 else 0)
    sampled(bench_on(nvml, monkeypatch))
    assert nvml.calls
    assert all(name.startswith("nvmlDeviceGet") for name in nvml.calls)
