"""An NVIDIA GPU as a device: streams, flush, ordering check and error check.

Everything runs on a stream of the harness's own that does not wait for the default stream, so a
kernel that ignores the current stream cannot hide behind implicit ordering.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness import order
from perftests.harness.arena import Arena, free_bytes
from perftests.harness.contexts import streams_of_contexts
from perftests.harness.cuda_kernels import DeviceKernels, import_cupy
from perftests.harness.cuda_runners import (
    MOST_ROUNDS,
    ColdRunner,
    EventPairs,
    GraphRunner,
    Hold,
)
from perftests.harness.driver import DRIVER
from perftests.harness.errors import ChainBrokenError, Link, UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftests.harness.buffers import BufferSet
    from perftests.harness.sampling import Runner

_LIMIT_PERSISTING_L2 = 6
"""cudaLimitPersistingL2CacheSize in the runtime's enumeration."""
_FLUSHES_TIMED = 9
_FLUSH_HOLD_NS = 50_000
_FLUSHED_CACHES = 2.5
"""L2 sizes that a flush writes: two, and what it writes until persisting lines are reset."""
_STREAMS = 63
"""Odd, as the launches in a turn are; places are a power of two: all come together in time."""
_MOST_PLACES = 32
_PLACES_SHARE = 1 / 16
"""Share of the device's memory that the buffer sets of a cold sample take at most."""
_FREE_PER_ARENA = 4
"""Times the arena has to be free: other processes may measure in turn, and need one as well."""


@dataclass(frozen=True)
class StreamHandle:
    """A stream's address under the CUDA stream protocol, which older torch streams lack."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.address)


class CudaDevice:
    """One GPU, with the launch stream, the flush and the yardsticks' kernels."""

    kind = "cuda"

    def __init__(self, index: int = 0) -> None:
        if not torch.cuda.is_available():
            raise UnfitError("cannot measure on a GPU: torch sees none; use --bandwatch-device cpu")
        if index >= torch.cuda.device_count():
            raise UnfitError(
                f"cannot measure on cuda:{index}: torch sees {torch.cuda.device_count()} GPUs; "
                "choose another with --bandwatch-device"
            )
        self.cupy = import_cupy()
        self.runtime = self.cupy.cuda.runtime
        self.device = torch.device("cuda", index)
        self.properties = torch.cuda.get_device_properties(index)
        self.attributes: dict[str, int] = dict(self.cupy.cuda.Device(index).attributes)
        self.highest_sm_clock_hz = 1e3 * self.attributes.get("ClockRate", 0) or None
        self.cache_bytes = int(self.properties.L2_cache_size)
        self.flush_bytes = ceil(_FLUSHED_CACHES * self.cache_bytes / (1 << 20)) << 20
        self._seen_by_cupy: dict[int, Any] = {}
        with torch.cuda.device(self.device), self.cupy.cuda.Device(index):
            self._own, self._other = self._new_stream(), self._new_stream()
            self._flush_buffer = torch.ones(self.flush_bytes, dtype=torch.uint8, device=self.device)
            self.kernels = DeviceKernels()
            torch.cuda.synchronize(self.device)
        self._driver = ctypes.CDLL(DRIVER)

    def _new_stream(self) -> torch.cuda.Stream:
        """Return a stream that is nobody else's: torch gives its thirty-two out again and again."""
        made = self.cupy.cuda.Stream(non_blocking=True)
        self._seen_by_cupy[made.ptr] = made
        return torch.cuda.ExternalStream(made.ptr, self.device)

    @cached_property
    def _of_contexts(self) -> tuple[torch.cuda.Stream, ...]:
        return streams_of_contexts(self, _STREAMS)

    @cached_property
    def _turns(self) -> tuple[torch.cuda.Stream, ...]:
        """Streams of several contexts, else as many of the primary one."""
        return self._of_contexts or tuple(self._new_stream() for _ in range(_STREAMS))

    @property
    def has_one_context(self) -> bool:
        """Whether the streams that take turns, where they do, belong to the primary context."""
        return self._is_ours() and not self._of_contexts

    @contextmanager
    def stream(self) -> Iterator[torch.cuda.Stream]:
        """Make the launch stream current for torch and CuPy: the caller's own, else ours."""
        current = torch.cuda.current_stream(self.device)
        is_default = current == torch.cuda.default_stream(self.device)
        chosen = self._own if is_default else current
        index = self.device.index
        with torch.cuda.device(index), self.cupy.cuda.Device(index), self.on(chosen):
            yield chosen

    @contextmanager
    def on(self, stream: torch.cuda.Stream) -> Iterator[None]:
        """Make a stream current for torch and CuPy, on the current device."""
        with torch.cuda.stream(stream), self._cupy_stream(stream):
            yield

    def turn_to(self, stream: torch.cuda.Stream) -> None:
        """Make another stream current inside `on`, which turns back at its end.

        Takes 2 us where `on` takes 20: that is part of a batch's wall time.
        """
        torch.cuda.set_stream(stream)
        self._cupy_stream(stream).use()

    def streams(self, places: int = _MOST_PLACES) -> tuple[torch.cuda.Stream, ...]:
        """Return the streams whose turn it is to launch: several of ours, or the caller's alone.

        No more than fresh inputs meet in their rounds over so many places, and an odd number.

        A stream and its context have a place on the device, as a buffer has, and each is up to
        0.1 us faster or slower than the next for as long as the process lives.
        """
        if not self._is_ours():
            return (torch.cuda.current_stream(self.device),)
        most = min(len(self._turns), MOST_ROUNDS * places)
        return self._turns[: most - 1 + most % 2]

    def _is_ours(self) -> bool:
        """Whether the launch stream is the harness's own, not the caller's."""
        return bool(torch.cuda.current_stream(self.device) == self._own)

    def _cupy_stream(self, stream: torch.cuda.Stream) -> Any:
        """Return torch's stream as CuPy sees it, by the way that this CuPy offers."""
        handle = stream.cuda_stream
        if handle not in self._seen_by_cupy:
            from_external = getattr(self.cupy.cuda.Stream, "from_external", None)
            self._seen_by_cupy[handle] = (
                from_external(StreamHandle(handle))
                if from_external is not None
                else self.cupy.cuda.ExternalStream(handle, self.device.index)
            )
        return self._seen_by_cupy[handle]

    def synchronize(self) -> None:
        """Wait for the whole device; raise ChainBrokenError for an error that surfaces here."""
        try:
            torch.cuda.synchronize(self.device)
        except Exception as error:  # torch raises its own AcceleratorError, a RuntimeError
            raise ChainBrokenError(Link.DEVICE, first_line(error), sticky=True) from error

    def flush(self, stream: torch.cuda.Stream) -> None:
        """Enqueue a flush of the L2: it is overwritten, which leaves dirty lines behind.

        Where lines may persist, the caller resets them before or as soon as the flush begins.
        """
        where, handle = self._flush_buffer.data_ptr(), stream.cuda_stream
        self.runtime.memsetAsync(where, 0, self.flush_bytes, handle)

    @cached_property
    def flush_s(self) -> float:
        """How long the device works on a flush as launches have it: beside a reset, some 2 us more.

        Asked for when the launch stream is current.
        """
        return median(self._flush_once() for _ in range(_FLUSHES_TIMED))

    def _flush_once(self) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream(self.device)
        self.kernels.spin(_FLUSH_HOLD_NS)
        start.record(stream)
        self.flush(stream)
        stop.record(stream)
        while not start.query():
            pass
        if self.may_persist():
            self.reset_persisting()
        self.synchronize()
        return float(start.elapsed_time(stop)) * 1e-3

    @cached_property
    def pairs(self) -> EventPairs:
        """The events of all runners; asked for when the launch stream is current."""
        return EventPairs(self)

    @cached_property
    def hold(self) -> Hold:
        """What the host says to the kernel before a cold launch."""
        return Hold(self)

    def may_persist(self) -> bool:
        """Whether some of the L2 is set aside for persisting lines, which survive a flush.

        On an H200 that is so from the start: 11.25 MiB.
        """
        try:
            return int(self.cupy.cuda.runtime.deviceGetLimit(_LIMIT_PERSISTING_L2)) > 0
        except self.cupy.cuda.runtime.CUDARuntimeError:
            return False

    def reset_persisting(self) -> None:
        """Turn persisting lines back into normal ones; takes effect at once, without a sync."""
        self._driver.cuCtxResetPersistingL2Cache()

    def ordered(
        self,
        launch: Callable[[], object],
        buffers: BufferSet,
        stream: torch.cuda.Stream | None = None,
    ) -> order.Look:
        """Launch behind a held stream and return the output as that stream sees it right after.

        Without a `stream` it is the caller's own, or where that is ours another than that of the
        first call: who kept that one does not follow.
        """
        seen = order.look(self, launch, buffers, stream or self._looked_at())
        return replace(seen, unseen=self.blind) if self.blind else seen

    @cached_property
    def blind(self) -> str | None:
        """Why work beside the launch stream cannot be seen; asked for when that is current.

        A device feeds its streams from a few queues: the caller's may share one with either of
        ours, and hold it up, not with both, which were made one after the other.
        """
        looked_at = self._looked_at()
        beside = [stream for stream in (self._own, self._other) if stream != looked_at]
        return order.why_blind(self, looked_at, beside)

    def _looked_at(self) -> torch.cuda.Stream:
        return self._other if self._is_ours() else torch.cuda.current_stream(self.device)

    def profiled(self, launch: Callable[[], object]) -> None:
        """Launch between a profiler's marks, and wait."""
        self.synchronize()
        self.runtime.profilerStart()
        launch()
        self.synchronize()
        self.runtime.profilerStop()

    def runner(
        self, mode: str, launches: Sequence[Callable[[], object]], *, streams: bool = True
    ) -> Runner:
        """Return the timer of a cache mode over one launch for each buffer set.

        `streams` says whether cold launches may take turns on several.
        """
        if mode == "cold":
            current = torch.cuda.current_stream(self.device)
            met = self.streams(len(launches)) if streams else (current,)
            return ColdRunner(self, launches, met)
        return GraphRunner(self, mode, launches)

    def sets_needed(self, mode: str, set_bytes: int) -> int:
        """Return how many buffer sets the launches of a mode go through.

        Rotated: over five L2 sizes. Cold: several places in memory, for one place is a few tenths
        of a microsecond faster or slower than another; one where the device has no room for more.
        """
        if mode == "rotated":
            return 5 * self.cache_bytes // set_bytes + 2
        if mode != "cold":
            return 1
        places = max(1, min(_MOST_PLACES, self.arena.size // 2 // set_bytes))
        return 1 << (places.bit_length() - 1)

    @cached_property
    def arena(self) -> Arena:
        """Where a case's further buffer sets and those of the copies beside it lie."""
        wanted = 2 * int(_PLACES_SHARE * self.properties.total_memory)
        return Arena(wanted, self.device, at_most=free_bytes(self.device) // _FREE_PER_ARENA)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, with its type where it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
