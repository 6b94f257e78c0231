"""From batches of timed launches to one sample: warm-up until steady, then the stop rule.

A runner enqueues and times launches of one workload in one cache mode; devices supply them. What
is common to all of them, and to the CPU, is here.
"""

from __future__ import annotations

import gc
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from perftests.harness.clock import perf_counter
from perftests.harness.stop import Stopper, StopRule

if TYPE_CHECKING:
    from collections.abc import Callable

_BATCH_SECONDS = 0.009
"""Length of a batch: long against one synchronisation, short against the caps."""
_FIRST_BATCH = 8
LARGEST_BATCH = 192
_STEADY_CLOCK = 0.005
_STEADY_TIME = 0.02


@dataclass(frozen=True)
class Batch:
    """What one batch gave: seconds a launch, the clock beside it, and how many were refused.

    `late` counts launches that the host enqueued only after the device had started to wait for
    them: their times hold the host's gap and are not among `seconds`. `busy_s` is how long the
    device worked on the batch, flushes included and waits left out; 0 where nobody measured that.
    """

    seconds: list[float]
    sm_clock_hz: float | None = None
    late: int = 0
    busy_s: float = 0.0


class Runner(Protocol):
    """Times launches of one workload in one cache mode."""

    @property
    def timer(self) -> str:
        """Name of the timer, as the record carries it."""

    @property
    def rounds(self) -> int:
        """How often to call `once`, so that it has met the streams as well."""

    def batch(self, count: int) -> Batch:
        """Time `count` measurements and wait for them."""

    def rest(self, count: int) -> None:
        """Launch on the buffer sets that the last `count` launches have not come to."""

    def once(self) -> None:
        """Launch as in the timed region, once on every buffer set, without timing."""


@dataclass(frozen=True)
class Sample:
    """All measurements of one case in seconds, and how they came about."""

    seconds: list[float]
    stop_reason: str
    loop_s: float
    sm_clock_hz: float | None
    late: int
    steady: bool
    timer: str
    busy_s: float = 0.0


@dataclass
class _Pool:
    """Batches gathered so far; NumPy looks at `seconds` as they lie."""

    seconds: array[float] = field(default_factory=lambda: array("d"))
    clocks: list[tuple[float, int]] = field(default_factory=list)
    late: int = 0
    busy_s: float = 0.0

    def add(self, batch: Batch) -> None:
        self.seconds.extend(batch.seconds)
        self.late += batch.late
        self.busy_s += batch.busy_s
        if batch.sm_clock_hz is not None:
            self.clocks.append((batch.sm_clock_hz, max(1, len(batch.seconds))))

    def clock_hz(self) -> float | None:
        weight = sum(count for _, count in self.clocks)
        return sum(hz * count for hz, count in self.clocks) / weight if weight else None


@dataclass(frozen=True)
class Warmth:
    """How a warm-up ended, steady or cut off, and what fills a batch."""

    steady: bool
    busy_s: float = 0.0
    batch: int = _FIRST_BATCH


def warm_up(runner: Runner, *, floor_s: float, cap_s: float) -> Warmth:
    """Run batches until clock and time stand still, or the cap is reached.

    Steady means: two batches in a row, after the floor, whose clocks differ by at most 0.5 % and
    whose medians differ by at most 2 %.
    """
    began = perf_counter()
    before: tuple[float, float | None] | None = None
    count, busy = 1, 0.0
    while True:
        start = perf_counter()
        batch = runner.batch(count)
        busy += batch.busy_s
        now = perf_counter()
        filling = _batch_size(count, now - start)
        seen = (float(np.median(batch.seconds)), batch.sm_clock_hz) if batch.seconds else None
        if seen and before and now - began >= floor_s and _is_steady(before, seen):
            return Warmth(True, busy, filling)
        if now - began >= cap_s:
            return Warmth(False, busy, filling)
        before, count = seen, filling


def _is_steady(before: tuple[float, float | None], after: tuple[float, float | None]) -> bool:
    if abs(after[0] / before[0] - 1) > _STEADY_TIME:
        return False
    if before[1] is None or after[1] is None:
        return True
    return abs(after[1] / before[1] - 1) <= _STEADY_CLOCK


def _batch_size(count: int, took_s: float) -> int:
    """Return the count that fills a batch, from what the last one took."""
    wanted = int(count * _BATCH_SECONDS / max(took_s, 1e-6))
    return max(1, min(wanted, 4 * count, LARGEST_BATCH))


def collect(
    runner: Runner,
    rule: StopRule,
    *,
    warmth: Warmth | None = None,
    halfway: Callable[[], None] | None = None,
) -> Sample:
    """Sample until the rule says stop, with garbage collection held off.

    `halfway` is called once between batches, when a first batch is in: device state during the
    window is read there, while the device is still warm from it.
    """
    pool, stopper = _Pool(), Stopper(rule)
    began = perf_counter()
    # none stops earlier, and each batch has waits of its own
    count = min(rule.min_samples, warmth.batch if warmth else _FIRST_BATCH)
    collecting = gc.isenabled()
    gc.disable()
    try:
        while True:
            start = perf_counter()
            pool.add(runner.batch(min(count, rule.max_samples - len(pool.seconds))))
            now = perf_counter()
            if halfway is not None:
                halfway()
                halfway = None
            reason = stopper.decide(pool.seconds, now - began)
            if reason is not None:
                break
            count = _batch_size(count, now - start)
    finally:
        if collecting:
            gc.enable()
    return Sample(
        pool.seconds.tolist(),
        reason,
        perf_counter() - began,
        pool.clock_hz(),
        pool.late,
        warmth is None or warmth.steady,
        runner.timer,
        pool.busy_s,
    )
