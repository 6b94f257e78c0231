"""Energy of a case: the device's own counter over a window of back-to-back launches.

NVML's counter moves in steps of tens of milliseconds. A window therefore begins and ends where the
counter was seen to move, and its length is known to within one poll at each end. The power of the
idle device, its context open, is measured once a session in the same way and subtracted. Nothing of
this is part of the case's time: it runs after the sample was taken.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.clock import perf_counter
from perftests.harness.cuda_runners import GraphRunner
from perftests.harness.errors import ChainBrokenError, HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.cuda import CudaDevice
    from perftests.harness.record import Findings
    from perftests.harness.session import Bench

_elapsed: Callable[..., float] = torch.cuda.Event.elapsed_time
"""Bound before measured code could replace it."""
_SETTLE_S = 0.2
_WINDOW_S = 1.0
"""As long as some boards smooth over: a shorter window would tell of the time before it."""
_LONGEST_S = 5.0
_LEAST_STEPS = 4
_IDLE_POLL_S = 0.002
_SLICE_S = 0.004
_SLICES_AHEAD = 8


class EnergyError(HarnessError):
    """No energy can be told: the counter is absent, refused or stands still."""


@dataclass(frozen=True)
class Step:
    """The counter in joules where it was seen to move, and the poll interval it moved in."""

    joules: float
    at_s: float
    within_s: float


@dataclass(frozen=True)
class Power:
    """Mean power of a window in watts, its standard error, and the window in seconds and steps."""

    watts: float
    error_w: float
    window_s: float
    steps: int


def watch_counter(
    read: Callable[[], float],
    work: Callable[[], object],
    *,
    window_s: float = _WINDOW_S,
    clock: Callable[[], float] = perf_counter,
) -> Power:
    """Return the power while `work` is called over and over, from step to step of the counter.

    Raises EnergyError when the counter hardly moves in five seconds.
    """
    began = clock()
    while clock() - began < _SETTLE_S:
        work()
    steps: list[Step] = []
    last, polled = read(), clock()
    while True:
        work()
        value, now = read(), clock()
        if value != last:
            steps.append(Step(value, (now + polled) / 2, (now - polled) / 2))
        last, polled = value, now
        if len(steps) >= _LEAST_STEPS and steps[-1].at_s - steps[0].at_s >= window_s:
            return power(steps)
        if now - began > _LONGEST_S:
            raise EnergyError(
                f"the energy counter moved {len(steps)} times in {_LONGEST_S:g} s; expected "
                f"{_LEAST_STEPS} or more"
            )


def watch_beside(
    read: Callable[[], float], work: Callable[[], object], *, window_s: float = _WINDOW_S
) -> Power:
    """Return the power while `work` is called over and over, read in a thread of its own.

    Reading takes NVML some 8 ms. Between two calls of `work` that would be a gap, however much was
    enqueued before: with reads that take longer than the work of a call the device waits.
    """
    with ThreadPoolExecutor(1, "bandwatch-energy") as reader:
        told = reader.submit(
            watch_counter, read, lambda: time.sleep(_IDLE_POLL_S), window_s=window_s
        )
        while not told.done():
            work()
        return told.result()


def power(steps: Sequence[Step]) -> Power:
    """Return the power from the first to the last step.

    The error joins the scatter of the steps' own powers with what the polls leave open of the
    window's two ends.
    """
    first, last = steps[0], steps[-1]
    window = last.at_s - first.at_s
    watts = (last.joules - first.joules) / window
    each = [
        (after.joules - before.joules) / (after.at_s - before.at_s)
        for before, after in pairwise(steps)
    ]
    count = len(each)
    scatter = sqrt(sum((one - watts) ** 2 for one in each) / max(1, count - 1) / count)
    ends = watts * hypot(first.within_s, last.within_s) / window
    return Power(watts, hypot(scatter, ends), window, len(steps))


def as_record(
    loaded: Power, idle: Power, *, launches_per_s: float, bytes_moved: int, flop: int
) -> dict[str, float | None]:
    """Return energy in J/GB and GFLOP/s per watt of the power above idle, with standard errors."""
    net = loaded.watts - idle.watts
    if net <= 0:
        raise EnergyError(
            f"{loaded.watts:.1f} W under load is no more than {idle.watts:.1f} W idle"
        )
    share = hypot(loaded.error_w, idle.error_w) / net
    per_gb = net / (launches_per_s * bytes_moved / 1e9)
    per_watt = launches_per_s * flop / 1e9 / net if flop else None
    return {
        "j_per_gb": per_gb,
        "j_per_gb_error": per_gb * share,
        "gflops_per_w": per_watt,
        "gflops_per_w_error": None if per_watt is None else per_watt * share,
        "power_w": loaded.watts,
        "idle_power_w": idle.watts,
        "launches_per_s": launches_per_s,
        "window_s": loaded.window_s,
        "steps": loaded.steps,
    }


def measure_energy(
    found: Findings, bench: Bench, launches: Sequence[Callable[[], object]], median_s: float
) -> None:
    """Fill in the case's energy, or the reason why there is none."""
    try:
        found.energy = _measured(found, bench, launches, median_s)
    except (EnergyError, ChainBrokenError) as error:
        found.reasons["energy"] = f"not measured: {error}"
        return
    if found.mode != "rotated" and found.workload.bytes_moved <= bench.device.cache_bytes:
        found.warnings["energy_from_cache"] = (
            "the case fits into the L2: its energy is that of launches from there; rotated mode "
            "tells that of the memory"
        )


def _measured(
    found: Findings, bench: Bench, launches: Sequence[Callable[[], object]], median_s: float
) -> dict[str, float | None]:
    if bench.device.kind != "cuda":
        raise EnergyError("a CPU has no energy counter that is read here")
    if bench.watch.absent is not None:
        raise EnergyError(bench.watch.absent)

    def read() -> float:
        millijoules = bench.watch.ask("nvmlDeviceGetTotalEnergyConsumption")
        if millijoules is None:
            told = bench.watch.refused.get("nvmlDeviceGetTotalEnergyConsumption", "no such reading")
            raise EnergyError(f"NVML refused the energy counter: {told}")
        return float(millijoules) / 1e3

    if bench.idle_power is None:
        bench.device.synchronize()
        bench.idle_power = watch_counter(read, lambda: time.sleep(_IDLE_POLL_S))
    sets = launches if found.mode == "rotated" else launches[:1]
    load = _Load(bench.device, sets, median_s)  # type: ignore[arg-type]
    loaded = watch_beside(read, load.work)
    workload = found.workload
    return as_record(
        loaded,
        bench.idle_power,
        launches_per_s=load.launches_per_s(),
        bytes_moved=workload.bytes_moved,
        flop=workload.flop,
    )


class _Load:
    """Launches without a gap, some tens of milliseconds ahead of the device."""

    def __init__(
        self, device: CudaDevice, launches: Sequence[Callable[[], object]], median_s: float
    ) -> None:
        self._device = device
        self._runner = GraphRunner(device, "hot", launches)
        self._replays = max(1, round(_SLICE_S / (self._runner.nodes * median_s)))
        self._ahead: deque[Any] = deque()
        self._first: Any = None
        self._last: Any = None
        self._slices = 0

    def work(self) -> None:
        """Enqueue one slice and wait for the one that was enqueued eight before."""
        for _ in range(self._replays):
            self._runner.once()
        self._last = torch.cuda.Event(enable_timing=True)
        self._last.record(torch.cuda.current_stream(self._device.device))
        if self._first is None:
            self._first = self._last
        else:
            self._slices += 1
        self._ahead.append(self._last)
        if len(self._ahead) > _SLICES_AHEAD:
            self._ahead.popleft().synchronize()

    def launches_per_s(self) -> float:
        """Wait for the device and return the rate from the first to the last slice."""
        self._device.synchronize()
        seconds = _elapsed(self._first, self._last) * 1e-3
        return self._slices * self._replays * self._runner.nodes / seconds
