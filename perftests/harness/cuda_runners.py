"""Timers of a GPU's cache modes, by CUDA events on the launch stream.

What the device does before each start event (a flush, a spin, a hold) lasts until the host has
enqueued the launch, so that the host's launch latency is not timed. Whether the host was in time is
not assumed: if the start event has already fired when all is enqueued, that launch is dropped and
counted. A spin measures the clock.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from perftests.harness.clock import perf_counter
from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.events import Event as _Event
from perftests.harness.events import query as _query
from perftests.harness.events import record as _record
from perftests.harness.events import wait as _wait
from perftests.harness.sampling import LARGEST_BATCH, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from perftests.harness.cuda import CudaDevice

_HEAD_START_NS = 100_000
_SPIN_NS = 32_000
_LONGEST_SPIN_NS = 400_000
_LONGEST_HOLD_NS = 20_000_000
"""A launch that waits for the device would wait for ever behind a hold without an end."""
_HOLD_BYTES = 64
_LATE_SHARE = 0.05
_LATE_COLD_SHARE, _FIRST_LATE = 0.1, 8
"""Late launches that a sample does without, at first and later: each costs some 50 us, while to
hold the stream costs 5 us a launch."""
_TURN = 11
"""Launches on one stream before the next has its turn: odd, as the number of streams is, so that in
time each stream comes to all places, whose number is a power of two."""
_CLOCK_NS = 40_000
MOST_ROUNDS = 2
"""Rounds over all places in which fresh inputs meet the streams: each compares every buffer set."""
_GRAPH_SECONDS = 5e-4
_LEAST_NODES = 20
_LOG_WORDS = 2
_Pair: TypeAlias = "tuple[torch.cuda.Event, torch.cuda.Event]"


class EventPairs:
    """A pool of event pairs and the log, in the host's memory, in which spins note the clock.

    The log is made at its full size at once: nothing here allocates while something is timed.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._pairs: list[_Pair] = []
        from perftests.harness.event_clock import elapsed_ms  # needs CuPy, as a device does

        self._elapsed: Callable[[int, int], float] = elapsed_ms
        self._memory = device.cupy.cuda.alloc_pinned_memory(8 * _LOG_WORDS * LARGEST_BATCH)
        self._log = np.frombuffer(self._memory, np.int64, _LOG_WORDS * LARGEST_BATCH)
        self._log[:] = 0

    def take(self, count: int) -> list[_Pair]:
        """Return `count` pairs, at most the largest batch."""
        while len(self._pairs) < count:
            pair = _Event(enable_timing=True), _Event(enable_timing=True)
            self._pairs.append(pair)
        return self._pairs[:count]

    def seconds(self, count: int) -> list[float]:
        """Return what the first `count` pairs show."""
        return [self.shown(pair) for pair in self._pairs[:count]]

    def shown(self, pair: _Pair) -> float:
        """Return the seconds that a pair shows; CuPy asks in a third of the time of torch."""
        start, stop = pair
        return self._elapsed(start.cuda_event, stop.cuda_event) * 1e-3

    def log_address(self, index: int) -> int:
        """Return where the spin of one measurement writes its cycles and nanoseconds."""
        return int(self._memory.ptr) + 8 * _LOG_WORDS * index

    def clock_hz(self, count: int) -> float | None:
        """Return cycles over time, pooled: the timer's coarse steps average out over a batch."""
        cycles, nanoseconds = self._log[: _LOG_WORDS * count].reshape(count, _LOG_WORDS).sum(axis=0)
        return float(cycles / nanoseconds * 1e9) if nanoseconds > 0 else None


class Hold:
    """Memory through which the host lets a kernel go that holds the stream."""

    def __init__(self, device: CudaDevice) -> None:
        self._memory = device.cupy.cuda.alloc_pinned_memory(_HOLD_BYTES)
        self._word = np.frombuffer(self._memory, np.int32, 1)
        self._word[:] = 0
        self._number = 0
        self._launch = device.kernels.holder(self._memory.ptr, _LONGEST_HOLD_NS)

    def enqueue(self, stream: int) -> None:
        """Enqueue a kernel that holds the stream until `release`."""
        self._number += 1
        self._launch(self._number, stream)

    def release(self) -> None:
        """Let the stream go on, now or when it comes to the hold."""
        self._word[0] = self._number


class ColdRunner:
    """One flushed launch between two events, each alone on the device.

    While the device flushes, the host enqueues the launch between its events and the next flush,
    and waits for the launch: nothing else happens when the flush is done. A host that comes too
    late for that holds the stream from then on until all is enqueued.

    Buffer sets take turns by launch, streams every few launches: a process places both where they
    stay a little faster or slower than elsewhere, and a sample from several differs less from the
    next process's.
    """

    timer = "cuda_event_cold"

    def __init__(
        self,
        device: CudaDevice,
        launches: Sequence[Callable[[], object]],
        streams: Sequence[torch.cuda.Stream],
    ) -> None:
        self._device = device
        self._launches = launches
        self._pairs = device.pairs
        self._hold = device.hold
        self._launched, self._late, self._holds = 0, 0, False
        self._resets = True
        self._home = streams[0]
        self.rounds = -(-len(streams) // len(launches))
        self._streams = cycle(streams)
        met = islice(cycle(launches), max(len(streams), len(launches)))
        self._spread(met)  # some libraries keep memory for each stream or address

    def _spread(self, launches: Iterable[Callable[[], object]]) -> None:
        """Launch one after the other, each on the stream whose turn it is, and wait for all.

        A stream waits for the launch before, the host for none: that would take twice as long.
        """
        ((done, _),) = self._pairs.take(1)
        self._device.synchronize()
        with self._device.on(self._home):
            for launch in launches:
                stream = next(self._streams)
                self._device.turn_to(stream)
                _wait(done, stream)
                launch()
                _record(done, stream)
            self._device.synchronize()

    def batch(self, count: int) -> Batch:
        """Time `count` launches, one after the other, and wait for them."""
        device, pairs = self._device, self._pairs.take(count)
        self._resets = device.may_persist()
        device.synchronize()
        with device.on(self._home):
            late, times = self._in_turns(pairs)
            device.synchronize()
        times.append(self._pairs.shown(pairs[-1]))
        good = [seconds for seconds, is_late in zip(times, late, strict=True) if not is_late]
        busy = count * device.flush_s + sum(good)
        return Batch(good, self._pairs.clock_hz(1), sum(late), busy)

    def _in_turns(self, pairs: Sequence[_Pair]) -> tuple[list[bool], list[float]]:
        """Launch once for each pair; return which came too late, and what all but the last show."""
        device = self._device
        late: list[bool] = []
        times: list[float] = []
        stream = next(self._streams)
        device.turn_to(stream)
        # before the flush: beside it the timer's steps come unevenly
        device.kernels.spin(_CLOCK_NS, self._pairs.log_address(0))
        if self._resets:
            device.reset_persisting()
        device.flush(stream)
        *others, last = pairs
        for done, pair in enumerate(others, 1):
            following = next(self._streams) if done % _TURN == 0 else stream
            late.append(self._launch(pair, stream, following))
            if done > 1:  # read while the device has work
                times.append(self._pairs.shown(others[done - 2]))
            self._wait_for(pair, following)
            if following is not stream:
                device.turn_to(following)
                stream = following
        late.append(self._launch(last, stream, None))
        if others:
            times.append(self._pairs.shown(others[-1]))
        self._wait_for(last, None)
        return late, times

    def _launch(
        self, pair: _Pair, stream: torch.cuda.Stream, following: torch.cuda.Stream | None
    ) -> bool:
        """Enqueue once while the stream is busy; return whether it was so for too short a time.

        The next flush is enqueued behind it, on the stream of the following launch. The last launch
        has none, which would give its start event time to show; on another stream than the launch's
        it takes the host so long that the launch would be late. Both are always held.
        """
        start, stop = pair
        launch = self._launches[self._launched % len(self._launches)]
        holds = self._holds or following is not stream
        self._launched += 1
        try:
            if holds:
                self._hold.enqueue(stream.cuda_stream)
            _record(start, stream)
            launch()
            _record(stop, stream)
            if following is not None:
                if following is not stream:
                    _wait(stop, following)
                self._device.flush(following)
            is_late = bool(_query(start))
        finally:
            if holds:
                self._hold.release()
        self._late += is_late
        self._holds = self._holds or self._late > _FIRST_LATE + _LATE_COLD_SHARE * self._launched
        return is_late

    def _wait_for(self, pair: _Pair, following: torch.cuda.Stream | None) -> None:
        """Wait for a launch; until then the host has time for whatever the device need not see."""
        _, stop = pair
        while not _query(stop):
            pass
        if following is not None and self._resets:  # the next flush has just begun
            self._device.reset_persisting()

    def rest(self, count: int) -> None:
        """Launch where the last `count` launches have not come to."""
        places = len(self._launches)
        self._spread(self._launches[(self._launched + i) % places] for i in range(places - count))

    def once(self) -> None:
        """Launch once on every buffer set; the streams take turns as in the timed region."""
        self._spread(self._launches)


class GraphRunner:
    """A CUDA graph of back-to-back launches between two events, divided by their number.

    With one buffer set the L2 stays warm (hot); with sets that exceed it, it does not (rotated).
    """

    rounds = 1

    def __init__(
        self, device: CudaDevice, mode: str, launches: Sequence[Callable[[], object]]
    ) -> None:
        self._device = device
        self._pairs = device.pairs
        self._spin_ns = _SPIN_NS
        self.timer = f"cuda_event_graph_{mode}"
        rounds = self._rounds(launches)
        self.nodes = rounds * len(launches)
        self._graph = self._capture(launches, rounds)

    def _rounds(self, launches: Sequence[Callable[[], object]]) -> int:
        """Return how often all sets are launched in a graph, from the host's own estimate."""
        device = self._device
        for launch in launches:
            launch()
        device.synchronize()
        began = perf_counter()
        for launch in launches:
            launch()
        device.synchronize()
        took = max((perf_counter() - began) / len(launches), 1e-6)
        wanted = max(_LEAST_NODES, int(_GRAPH_SECONDS / took))
        return max(1, wanted // len(launches))

    def _capture(
        self, launches: Sequence[Callable[[], object]], rounds: int
    ) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        self._device.synchronize()
        try:
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(rounds):
                    for launch in launches:
                        launch()
            finally:
                graph.capture_end()
        except Exception as error:
            raise ChainBrokenError(
                Link.LAUNCH,
                f"the launch cannot be captured into a CUDA graph ({error}), which the modes hot "
                "and rotated need; launch on the current stream without waiting, or measure cold",
            ) from error
        graph.replay()
        self._device.synchronize()
        return graph

    def batch(self, count: int) -> Batch:
        """Enqueue and time `count` measurements, then wait for them."""
        pairs = self._pairs.take(count)
        stream = torch.cuda.current_stream(self._device.device)
        late = []
        self._device.kernels.spin(_HEAD_START_NS)
        for index, (start, stop) in enumerate(pairs):
            self._device.kernels.spin(self._spin_ns, self._pairs.log_address(index))
            _record(start, stream)
            self._graph.replay()
            _record(stop, stream)
            late.append(_query(start))
        self._device.synchronize()
        if sum(late) > _LATE_SHARE * count:
            self._spin_ns = min(2 * self._spin_ns, _LONGEST_SPIN_NS)
        times = self._pairs.seconds(count)
        seconds = [
            took / self.nodes for took, is_late in zip(times, late, strict=True) if not is_late
        ]
        return Batch(seconds, self._pairs.clock_hz(count), sum(late), sum(times))

    def rest(self, count: int) -> None:
        """Launch nothing: each measurement goes through all buffer sets."""

    def once(self) -> None:
        """Launch as in the timed region, once or more on every buffer set."""
        self._graph.replay()
