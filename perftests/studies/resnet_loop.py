"""One model's iterations on a device: how long, how busy the GPU, how much power."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, hypot, inf
from typing import TYPE_CHECKING

import torch

from perftests.harness.energy import EnergyError, Power, power
from perftests.harness.environment import gpu_uuid
from perftests.studies import counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from perftests.harness.session import Bench
    from perftests.studies.counter import Load

_LEAST, _MOST = 20, 200
_CPU_LEAST = 3
_WITHIN_S = 0.3
_PROFILED = 4
_SETTLE_S, _WINDOW_S = 0.3, 2.2
"""Of a window for energy, what is left out at its start, and what follows."""
_IDLE_S = 1.0
_FASTER = 1.5
"""A window has events for a pace so much above that of the iterations that were timed."""
_APART_S = 0.05
"""The device's clock and the host's may come so far apart over a window."""


@dataclass(frozen=True)
class Busy:
    """Of an iteration: seconds in which any kernel ran, and kernels and copies launched."""

    seconds: float
    launches: float


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
    return [last - first for first, last in pairwise(ends(call, bench, count))]


def ends(
    call: Callable[[], object], bench: Bench, count: int, *, within_s: float = inf
) -> list[float]:
    """Return when the device was ready and when each iteration ended, by the monotonic clock.

    Iterations are enqueued one behind the other, `count` of them or until `within_s` have passed;
    all that is done between two is to record an event. The device's clock is tied to the host's
    where the device had nothing to do.
    """
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    for _ in range(2):
        call()
    bench.device.synchronize()
    began = time.monotonic()
    until = began + within_s
    events[0].record()
    done = 0
    for event in events[1:]:
        call()
        event.record()
        done += 1
        if time.monotonic() > until:
            break
    bench.device.synchronize()
    took = [float(events[0].elapsed_time(event)) * 1e-3 for event in events[1 : done + 1]]
    return [began, *(began + seconds for seconds in took)]


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
    """Return the idle device's power, its context open; raise EnergyError without a counter."""
    bench.device.synchronize()
    with counter.watched(_watcher(bench)) as seen:
        began = time.monotonic()
        time.sleep(_SETTLE_S + _IDLE_S)
        ended = time.monotonic()
    return power(seen.between(began + _SETTLE_S, ended))


def joined(before: Power, after: Power) -> Power:
    """Return the mean of two idle powers; its error has what they differ by."""
    return Power(
        (before.watts + after.watts) / 2,
        hypot(before.error_w, after.error_w, before.watts - after.watts) / 2,
        before.window_s + after.window_s,
        before.steps + after.steps,
    )


def loaded(call: Callable[[], object], bench: Bench, iteration_s: float) -> Load:
    """Return the energy of back-to-back iterations; raise EnergyError without a counter.

    The loop is that of `iteration_times`, only longer; the counter is another process's affair.
    Raises it as well where the device's clock and the host's come apart, so that nothing is joined.
    """
    within = _SETTLE_S + _WINDOW_S
    with counter.watched(_watcher(bench)) as seen:
        ended = ends(call, bench, ceil(_FASTER * within / iteration_s), within_s=within)
        apart = time.monotonic() - ended[-1]
    if abs(apart) > _APART_S:
        raise EnergyError(
            f"the iterations ended {apart:.3f} s earlier by the device's clock than by the host's; "
            f"expected {_APART_S:g} s or less"
        )
    return counter.load(seen, ended, _SETTLE_S)


def _watcher(bench: Bench) -> list[str]:
    if bench.watch.absent is not None:
        raise EnergyError(bench.watch.absent)
    return counter.command(gpu_uuid(bench.device))  # type: ignore[arg-type]
