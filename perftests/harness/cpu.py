"""The CPU as a device: host clock, last-level-cache flush, the same rules as on a GPU."""

from __future__ import annotations

import ctypes
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from perftests.harness.arena import Arena
from perftests.harness.buffers import POISON_NAN
from perftests.harness.clock import perf_counter_ns
from perftests.harness.order import Look
from perftests.harness.sampling import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from perftests.harness.buffers import BufferSet
    from perftests.harness.sampling import Runner

_FALLBACK_CACHE_BYTES = 32 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HOT_SECONDS = 2e-4
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MAPS = Path("/proc/self/maps")


def last_level_cache_bytes(caches: Path = _CACHES) -> int | None:
    """Return the size of the first core's largest cache, None where Linux does not say."""
    sizes = []
    for path in caches.glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KMG]?)", path.read_text().strip())
        if match:
            sizes.append(int(match[1]) * _SCALE[match[2]])
    return max(sizes, default=None)


def cpu_threads() -> int:
    """Return the threads to measure with: OMP_NUM_THREADS, else one.

    Several meet at the end of every launch. On a machine that does other work too, one of them then
    waits for a core, and a launch takes either its own time or the scheduler's.
    """
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(text) if text.isdigit() and int(text) > 0 else 1


def hold_threads(count: int, maps: Path = _MAPS) -> None:
    """Hold torch and every OpenMP runtime, loaded or to come, to `count` threads that sleep."""
    torch.set_num_threads(count)
    os.environ["OMP_NUM_THREADS"] = str(count)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    mapped = maps.read_text().splitlines() if maps.exists() else []
    runtimes = {line.split(maxsplit=5)[-1] for line in mapped if re.search(r"lib[gi]?omp", line)}
    for path in runtimes:
        ctypes.CDLL(path).omp_set_num_threads(count)


class CpuDevice:
    """Times on the host clock. Everything is done when a call returns, so nothing waits.

    `threads` holds this process to so many; None leaves them as they are.
    """

    kind = "cpu"
    has_one_context = False
    blind = None

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None:
            hold_threads(threads)
        self.device = torch.device("cpu")
        self.cache_bytes = last_level_cache_bytes() or _FALLBACK_CACHE_BYTES
        self.flush_bytes = 2 * self.cache_bytes
        self.arena = Arena(0, self.device)
        self._flush_parts: list[np.ndarray] = []
        self._pool: ThreadPoolExecutor

    def stream(self) -> AbstractContextManager[object]:
        """Return a context for launches; a CPU has none to choose."""
        return nullcontext()

    def synchronize(self) -> None:
        """Wait for nothing: a CPU call has finished when it returns."""

    def flush(self) -> None:
        """Read and write twice the last-level cache, on as many threads as torch uses.

        The threads are Python's own and sleep afterwards. Those of torch's OpenMP would go on
        spinning for milliseconds and take a core from what is measured next.
        """
        if not self._flush_parts:
            count = torch.get_num_threads()
            self._flush_parts = np.array_split(np.zeros(self.flush_bytes // 8, np.int64), count)
            self._pool = ThreadPoolExecutor(count, thread_name_prefix="bandwatch-flush")
        list(self._pool.map(_touch, self._flush_parts))

    def ordered(self, launch: Callable[[], object], buffers: BufferSet) -> Look:
        """Launch on a poisoned output and return it as it stands when the call returns."""
        buffers.output.poison(POISON_NAN)
        launch()
        return Look(buffers.output_tensor.clone())

    def runner(
        self,
        mode: str,
        launches: Sequence[Callable[[], object]],
        *,
        streams: bool = True,  # noqa: ARG002 - a CPU has none
    ) -> Runner:
        """Return the timer of a cache mode over one launch for each buffer set."""
        if mode == "cold":
            return _ColdRunner(self, launches)
        return _BackToBackRunner(mode, launches)

    def sets_needed(self, mode: str, set_bytes: int) -> int:
        """Return how many buffer sets a mode rotates through: over five caches when rotated."""
        return 5 * self.cache_bytes // set_bytes + 2 if mode == "rotated" else 1


def _touch(part: np.ndarray) -> None:
    np.add(part, 1, out=part)


class _ColdRunner:
    """One launch a measurement, after a flush."""

    timer = "host_clock_cold"
    rounds = 1

    def __init__(self, device: CpuDevice, launches: Sequence[Callable[[], object]]) -> None:
        self._device = device
        self._launches = launches
        self._turn = 0

    def batch(self, count: int) -> Batch:
        seconds = []
        for _ in range(count):
            launch = self._launches[self._turn % len(self._launches)]
            self._turn += 1
            self._device.flush()
            began = perf_counter_ns()
            launch()
            seconds.append((perf_counter_ns() - began) * 1e-9)
        return Batch(seconds)

    def rest(self, count: int) -> None:
        places = len(self._launches)
        for turn in range(self._turn, self._turn + places - count):
            self._launches[turn % places]()

    def once(self) -> None:
        for launch in self._launches:
            launch()


class _BackToBackRunner:
    """Many launches a measurement, without a flush, the buffers in turn."""

    rounds = 1

    def __init__(self, mode: str, launches: Sequence[Callable[[], object]]) -> None:
        self.timer = f"host_clock_{mode}"
        self._launches = launches
        self._rounds = 1
        began = perf_counter_ns()
        self.once()
        took = max((perf_counter_ns() - began) * 1e-9, 1e-7)
        self._rounds = max(1, min(1000, int(_HOT_SECONDS / took)))

    def batch(self, count: int) -> Batch:
        seconds = []
        for _ in range(count):
            began = perf_counter_ns()
            for _ in range(self._rounds):
                for launch in self._launches:
                    launch()
            took = (perf_counter_ns() - began) * 1e-9
            seconds.append(took / (self._rounds * len(self._launches)))
        return Batch(seconds)

    def rest(self, count: int) -> None:
        """Launch nothing: each measurement goes through all buffer sets."""

    def once(self) -> None:
        for launch in self._launches:
            launch()
