"""One model's iterations on a device: how long, how busy the GPU, how much power."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.energy import EnergyError, Power, watch_beside, watch_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perftests.harness.session import Bench

_LEAST, _MOST = 20, 200
_CPU_LEAST = 3
_WITHIN_S = 0.3
_PROFILED = 4
_AHEAD_S = 0.03
"""Work that is queued ahead of the device."""
_IDLE_POLL_S = 0.002
_WINDOW_S = 0.8
_ASK_S = 0.1


@dataclass(frozen=True)
class Busy:
    """Of an iteration: seconds in which any kernel ran, and kernels and copies launched."""

    seconds: float
    launches: float


@dataclass(frozen=True)
class Load:
    """A window of back-to-back iterations: power, iterations a second, NVML's utilisation."""

    power: Power
    per_s: float
    utilisation: float | None


def iteration_times(call: Callable[[], object], bench: Bench) -> list[float]:
    """Return the times of iterations one behind the other, the host's pace included, in seconds."""
    call()
    bench.device.synchronize()
    began = time.perf_counter()
    call()
    bench.device.synchronize()
    took = time.perf_counter() - began
    if bench.device.kind == "cpu":
        return [_clocked(call) for _ in range(max(_CPU_LEAST, int(_WITHIN_S / took)))]
    count = min(_MOST, max(_LEAST, int(_WITHIN_S / took)))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    for _ in range(2):
        call()
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    bench.device.synchronize()
    return [float(first.elapsed_time(last)) * 1e-3 for first, last in pairwise(events)]


def _clocked(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def busy(call: Callable[[], object], bench: Bench) -> Busy:
    """Return what the GPU does in an iteration, as CUPTI sees it."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(_PROFILED):
            call()
        bench.device.synchronize()
    ran = [
        (float(event.time_range.start), float(event.time_range.end))
        for event in seen.events()
        if str(event.device_type).endswith("CUDA")
        and not getattr(event, "is_user_annotation", False)
    ]
    return Busy(covered(ran) * 1e-6 / _PROFILED, len(ran) / _PROFILED)


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length that intervals cover together, what overlaps counted once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def idle_power(bench: Bench) -> Power:
    """Return the idle device's power, measured once a session; raise EnergyError without one."""
    if bench.idle_power is None:
        bench.device.synchronize()
        bench.idle_power = watch_counter(lambda: _joules(bench), lambda: time.sleep(_IDLE_POLL_S))
    return bench.idle_power


def loaded(call: Callable[[], object], bench: Bench, iteration_s: float) -> Load:
    """Return power and pace under back-to-back iterations; raise EnergyError without a counter."""
    window = _Window(call, bench, iteration_s)
    power = watch_beside(window.joules, window.work, window_s=_WINDOW_S)
    return Load(power, window.per_s(), window.utilisation())


def _joules(bench: Bench) -> float:
    if bench.watch.absent is not None:
        raise EnergyError(bench.watch.absent)
    millijoules = bench.watch.ask("nvmlDeviceGetTotalEnergyConsumption")
    if millijoules is None:
        told = bench.watch.refused.get("nvmlDeviceGetTotalEnergyConsumption", "no such reading")
        raise EnergyError(f"NVML refused the energy counter: {told}")
    return float(millijoules) / 1e3


class _Window:
    """Iterations without a gap, queued ahead of the device, and NVML's utilisation meanwhile."""

    def __init__(self, call: Callable[[], object], bench: Bench, iteration_s: float) -> None:
        self._call, self._bench = call, bench
        self._ahead: deque[Any] = deque()
        self._most = 1 + ceil(_AHEAD_S / iteration_s)
        self._first: Any = None
        self._last: Any = None
        self._count = 0
        self._seen: list[float] = []
        self._asked = time.perf_counter()

    def work(self) -> None:
        """Enqueue one iteration and wait for one that keeps enough of them ahead."""
        self._call()
        self._last = torch.cuda.Event(enable_timing=True)
        self._last.record()
        if self._first is None:
            self._first = self._last
        else:
            self._count += 1
        self._ahead.append(self._last)
        if len(self._ahead) > self._most:
            self._ahead.popleft().synchronize()

    def joules(self) -> float:
        """Return the energy counter, now and then after asking for the utilisation."""
        if time.perf_counter() - self._asked > _ASK_S:
            self._asked = time.perf_counter()
            rates = self._bench.watch.ask("nvmlDeviceGetUtilizationRates")
            if rates is not None:
                self._seen.append(rates.gpu / 100)
        return _joules(self._bench)

    def per_s(self) -> float:
        """Wait for the device and return the iterations a second."""
        self._bench.device.synchronize()
        return self._count / (float(self._first.elapsed_time(self._last)) * 1e-3)

    def utilisation(self) -> float | None:
        """Return NVML's last readings' mean: the first still hold the time before."""
        late = self._seen[len(self._seen) // 2 :]
        return sum(late) / len(late) if late else None
