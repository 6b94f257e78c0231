"""Copies between host and device memory, timed; from host to host where there is no device.

A piece of work is a callable that enqueues on torch's current stream. Several of them run at once,
each in a stream of its own. From pinned memory they are timed by events behind a held stream, so
that the host's latency is not part of it. A copy from or to pageable memory makes the host wait, so
that one is timed on the host clock, and several have a thread each.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.session import Bench

Work: TypeAlias = "Callable[[], object]"
PAGEABLE, PINNED = "pageable", "pinned"
STREAMS = 3
_HOLD_NS = 300_000
_LEAST, _MOST, _WITHIN_S = 9, 41, 0.35
_PATTERN = 251
"""A prime: a shift of the data by any power of two does not look the same."""


class Mover(Protocol):
    """What a device offers to copy with."""

    memories: tuple[str, ...]

    def host(self, count: int, dtype: torch.dtype, memory: str) -> torch.Tensor:
        """Return host memory of a kind."""

    def device(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return device memory."""

    def timer(self, memory: str) -> str:
        """Return the name of the timer that is used for a kind of memory."""

    def seconds(self, memory: str, works: Sequence[Work]) -> float | None:
        """Return how long the works take at once, None when the host was late."""


@dataclass(frozen=True)
class Ends:
    """The four ends of copies in and out, of one size and kind of host memory."""

    host_in: torch.Tensor
    device_in: torch.Tensor
    device_out: torch.Tensor
    host_out: torch.Tensor

    def copy_in(self) -> None:
        """Copy from host to device."""
        self.device_in.copy_(self.host_in, non_blocking=self.host_in.is_pinned())

    def copy_out(self) -> None:
        """Copy from device to host."""
        self.host_out.copy_(self.device_out, non_blocking=self.host_out.is_pinned())

    def poison(self) -> None:
        """Wipe out what copies are to write."""
        self.device_in.zero_()
        self.host_out.zero_()

    def wrong(self, *, inwards: bool, outwards: bool) -> str | None:
        """Return which copy did not arrive whole, None when all did."""
        if inwards and not torch.equal(self.device_in.cpu(), self.host_in):
            return "the copy to the device did not arrive whole"
        if outwards and not torch.equal(self.host_out, self.device_out.cpu()):
            return "the copy to the host did not arrive whole"
        return None


def ends(mover: Mover, nbytes: int, memory: str) -> Ends:
    """Return the ends of copies of `nbytes`, their sources filled with a pattern."""
    pattern = (torch.arange(nbytes, dtype=torch.int32) % _PATTERN).to(torch.uint8)
    made = Ends(
        mover.host(nbytes, torch.uint8, memory),
        mover.device(nbytes, torch.uint8),
        mover.device(nbytes, torch.uint8),
        mover.host(nbytes, torch.uint8, memory),
    )
    made.host_in.copy_(pattern)
    made.device_out.copy_(pattern.flip(0))
    made.poison()
    return made


def sample(mover: Mover, memory: str, works: Sequence[Work]) -> list[float]:
    """Return the times of the works at once, after one that warms up.

    Raises RuntimeError when the host was always late.
    """
    mover.seconds(memory, works)
    found: list[float] = []
    began, tried = time.perf_counter(), 0
    while len(found) < _MOST and tried < 2 * _MOST:
        tried += 1
        took = mover.seconds(memory, works)
        if took is not None:
            found.append(took)
        if len(found) >= _LEAST and time.perf_counter() - began > _WITHIN_S:
            break
    if not found:
        raise RuntimeError(f"no time: the host was late for each of {tried} tries")
    return found


class CpuMover:
    """From host to host: what stands in where there is no device."""

    memories: tuple[str, ...] = (PAGEABLE,)

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(STREAMS)

    def host(self, count: int, dtype: torch.dtype, memory: str) -> torch.Tensor:  # noqa: ARG002
        """Return host memory."""
        return torch.ones(count, dtype=dtype)

    def device(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return host memory once more."""
        return torch.ones(count, dtype=dtype)

    def timer(self, memory: str) -> str:  # noqa: ARG002
        """Return the timer's name."""
        return "host_clock"

    def seconds(self, memory: str, works: Sequence[Work]) -> float | None:  # noqa: ARG002
        """Return how long the works take in threads."""
        began = time.perf_counter()
        for future in [self._pool.submit(work) for work in works]:
            future.result()
        return time.perf_counter() - began


class GpuMover:
    """Over the link between host and GPU. To be used on the harness's launch stream."""

    memories: tuple[str, ...] = (PAGEABLE, PINNED)

    def __init__(self, bench: Bench) -> None:
        self._gpu: Any = bench.device
        self._device = bench.device.device
        self._streams = [torch.cuda.Stream(self._device) for _ in range(STREAMS)]
        self._pool = ThreadPoolExecutor(STREAMS)
        self._start = torch.cuda.Event(enable_timing=True)
        self._stops = [torch.cuda.Event(enable_timing=True) for _ in self._streams]

    def host(self, count: int, dtype: torch.dtype, memory: str) -> torch.Tensor:
        """Return host memory of a kind, every page of it in use."""
        return torch.empty(count, dtype=dtype, pin_memory=memory == PINNED).fill_(1)

    def device(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory of the GPU."""
        return torch.ones(count, dtype=dtype, device=self._device)

    def timer(self, memory: str) -> str:
        """Return the timer's name."""
        return "cuda_event_held_stream" if memory == PINNED else "host_clock"

    def seconds(self, memory: str, works: Sequence[Work]) -> float | None:
        """Return how long the works take at once, None when the host was late."""
        torch.cuda.synchronize(self._device)
        return self._held(works) if memory == PINNED else self._waited(works)

    def _held(self, works: Sequence[Work]) -> float | None:
        """Time by events: from the release of a held stream to the last work's end."""
        current = torch.cuda.current_stream(self._device)
        used = self._streams[: len(works)]
        self._gpu.kernels.spin(_HOLD_NS)
        self._start.record(current)
        for stream in used:
            stream.wait_event(self._start)
        for index, work in enumerate(works):
            with torch.cuda.stream(used[index % len(used)]):
                work()
        for stream, stop in zip(used, self._stops, strict=False):
            stop.record(stream)
        late = bool(self._start.query())
        torch.cuda.synchronize(self._device)
        # With more works than streams the host enqueues while the first are on their way.
        if late and len(works) <= STREAMS:
            return None
        took = [self._start.elapsed_time(stop) for stop, _ in zip(self._stops, used, strict=False)]
        return float(max(took)) * 1e-3

    def _waited(self, works: Sequence[Work]) -> float:
        """Time on the host clock, a thread and a stream for each work."""

        def run(index: int, work: Work) -> None:
            stream = self._streams[index % STREAMS]
            with torch.cuda.stream(stream):
                work()
            stream.synchronize()

        began = time.perf_counter()
        for future in [self._pool.submit(run, *pair) for pair in enumerate(works)]:
            future.result()
        return time.perf_counter() - began
