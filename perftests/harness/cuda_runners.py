"""Timers of a GPU's cache modes, by CUDA events on the launch stream.

A batch is enqueued ahead of the device and waited for once. Before each start event the device
flushes its L2 and then spins for some microseconds. The spin gives the host time to enqueue the
launch, lets the writes of the flush drain, and measures the clock. Whether the host was in time is
not assumed: if the start event has already fired when the launch is enqueued, that launch is
dropped and counted, and the spin grows.
"""

from __future__ import annotations

import time
from math import ceil
from typing import TYPE_CHECKING

import torch

from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.sampling import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.cuda import CudaDevice

_HEAD_START_NS = 100_000
_LONGEST_SPIN_NS = 400_000
_LATE_SHARE = 0.05
_GRAPH_SECONDS = 5e-4
_MOST_NODES = 1024
_LOG_WORDS = 2
_TIMER_STEP_S = 32e-9
"""Step of an event's time stamp on Hopper, seen in recorded data."""
_RESOLUTION = 1e-3
_LARGEST_GROUP = 16
_QUARTER = 4
MOST_LAUNCHES = 4096
"""Launches in one batch at most; the driver's queue blocks the host well before."""


class _EventPairs:
    """A pool of event pairs and the log in which spins note the clock.

    The log is made at its full size at once: nothing here allocates while something is timed.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.span = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._log = torch.zeros(_LOG_WORDS * MOST_LAUNCHES, dtype=torch.int64, device=device.device)

    def take(self, count: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        """Return `count` pairs, at most `MOST_LAUNCHES`."""
        while len(self._pairs) < count:
            pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self._pairs.append(pair)
        return self._pairs[:count]

    def span_s(self) -> float:
        """Return how long the device was busy from the first to the last event of a batch."""
        return float(self.span[0].elapsed_time(self.span[1])) * 1e-3

    def log_address(self, index: int) -> int:
        """Return where the spin of one measurement writes its cycles and nanoseconds."""
        return self._log.data_ptr() + 8 * _LOG_WORDS * index

    def clock_hz(self, count: int) -> float | None:
        """Return cycles over time, pooled: the timer's coarse steps average out over a batch."""
        host = self._log[: _LOG_WORDS * count].cpu()
        spent = host.view(count, _LOG_WORDS).sum(dim=0).tolist()
        return spent[0] / spent[1] * 1e9 if spent[1] > 0 else None


class ColdRunner:
    """One flushed launch between two events; `group` launches make one measurement."""

    def __init__(self, device: CudaDevice, launches: Sequence[Callable[[], object]]) -> None:
        self._device = device
        self._launches = launches
        self._pairs = _EventPairs(device)
        self._spin_ns = device.settle_ns
        self.group = 1
        """How many launches one measurement is the midmean of: 1 or a multiple of four."""
        self._turn = 0

    @property
    def timer(self) -> str:
        """Name of the timer as stored: midmean of how many launches, if more than one."""
        return "cuda_event_cold" + (f"_mid{self.group}" if self.group > 1 else "")

    def batch(self, count: int) -> Batch:
        """Enqueue and time `count` measurements, then wait for them."""
        launches = min(count * self.group, MOST_LAUNCHES)
        pairs = self._pairs.take(launches)
        late = self._enqueue(pairs)
        self._device.synchronize()
        times = [a.elapsed_time(b) * 1e-3 for a, b in pairs]
        good = [seconds for seconds, is_late in zip(times, late, strict=True) if not is_late]
        if sum(late) > _LATE_SHARE * launches:
            self._spin_ns = min(2 * self._spin_ns, _LONGEST_SPIN_NS)
        busy = self._pairs.span_s()
        return Batch(midmeans(good, self.group), self._pairs.clock_hz(launches), sum(late), busy)

    def _enqueue(self, pairs: Sequence[tuple[torch.cuda.Event, torch.cuda.Event]]) -> list[bool]:
        device, kernels = self._device, self._device.kernels
        stream = torch.cuda.current_stream(device.device)
        device.reset_persisting()
        wait_each = device.may_persist()
        late = []
        begin, end = self._pairs.span
        begin.record(stream)
        kernels.spin(_HEAD_START_NS)
        for index, (start, stop) in enumerate(pairs):
            if wait_each:
                device.synchronize()
                device.reset_persisting()
            launch = self._launches[self._turn % len(self._launches)]
            self._turn += 1
            device.flush()
            kernels.spin(self._spin_ns, self._pairs.log_address(index))
            start.record(stream)
            launch()
            stop.record(stream)
            late.append(start.query())
        end.record(stream)
        return late

    def once(self) -> None:
        """Launch as in the timed region, once on every buffer set."""
        for launch in self._launches:
            launch()

    def tune(self, estimate_s: float) -> None:
        """Group enough launches to bring the timer's step to 0.1 % of one.

        It is 0.7 % of a 4.5 us kernel: the median of single launches would jump by that.
        """
        wanted = ceil(_TIMER_STEP_S / (_RESOLUTION * estimate_s))
        fours = _QUARTER * ceil(wanted / _QUARTER)
        self.group = 1 if wanted <= 1 else min(_LARGEST_GROUP, fours)


def midmeans(seconds: Sequence[float], group: int) -> list[float]:
    """Return the mean of the middle half of each `group` values, a rest left out.

    Unlike the mean it does not follow the few launches that took long, so its median stays that of
    single launches, and its steps are finer than the timer's.
    """
    if group == 1:
        return list(seconds)
    cut = group // _QUARTER
    found = []
    for at in range(0, len(seconds) - group + 1, group):
        middle = sorted(seconds[at : at + group])[cut : group - cut]
        found.append(sum(middle) / len(middle))
    return found


class GraphRunner:
    """A CUDA graph of back-to-back launches between two events, divided by their number.

    With one buffer set the L2 stays warm (hot); with sets that exceed it, it does not (rotated).
    """

    def __init__(
        self, device: CudaDevice, mode: str, launches: Sequence[Callable[[], object]]
    ) -> None:
        self._device = device
        self._pairs = _EventPairs(device)
        self._spin_ns = 4 * device.settle_ns
        self.timer = f"cuda_event_graph_{mode}"
        rounds = self._rounds(launches)
        self._nodes = rounds * len(launches)
        self._graph = self._capture(launches, rounds)

    def _rounds(self, launches: Sequence[Callable[[], object]]) -> int:
        """Return how often all sets are launched in a graph, from the host's own estimate."""
        device = self._device
        for launch in launches:
            launch()
        device.synchronize()
        began = time.perf_counter()
        for launch in launches:
            launch()
        device.synchronize()
        took = max((time.perf_counter() - began) / len(launches), 1e-6)
        wanted = min(_MOST_NODES, max(20, int(_GRAPH_SECONDS / took)))
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
        begin, end = self._pairs.span
        begin.record(stream)
        self._device.kernels.spin(_HEAD_START_NS)
        for index, (start, stop) in enumerate(pairs):
            self._device.kernels.spin(self._spin_ns, self._pairs.log_address(index))
            start.record(stream)
            self._graph.replay()
            stop.record(stream)
            late.append(start.query())
        end.record(stream)
        self._device.synchronize()
        if sum(late) > _LATE_SHARE * count:
            self._spin_ns = min(2 * self._spin_ns, _LONGEST_SPIN_NS)
        seconds = [
            a.elapsed_time(b) * 1e-3 / self._nodes
            for (a, b), is_late in zip(pairs, late, strict=True)
            if not is_late
        ]
        return Batch(seconds, self._pairs.clock_hz(count), sum(late), self._pairs.span_s())

    def once(self) -> None:
        """Launch as in the timed region, once on every buffer set."""
        self._graph.replay()

    def tune(self, estimate_s: float) -> None:
        """Change nothing: the graph was made long enough."""
