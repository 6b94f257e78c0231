"""A board on the CPU's memory: what the chain asks of a GPU, without one, and how often it waits.

Launches are done when the call returns, and each of their times is given: only what the harness
does around them takes time here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from perftests.harness import buffers, timing
from perftests.harness.arena import Arena
from perftests.harness.calibrate import Peaks
from perftests.harness.lock import DeviceLock
from perftests.harness.order import Look
from perftests.harness.processes import Processes
from perftests.harness.sampling import Batch
from perftests.harness.session import Bench, Session
from perftests.harness.settings import Settings
from perftests.harness.state import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pytest

    from perftests.harness.buffers import BufferSet
    from perftests.tests.fake_nvml import FakeNvml

CPU = torch.device("cpu")
UUID = "GPU-1"
STREAMS = 63
_SECONDS = 1e-5
_ASKING = {"_local_scalar_dense", "equal"}
"""By which the host waits for a number from the device."""
_VIEWS = {
    "view",
    "slice",
    "select",
    "as_strided",
    "expand",
    "alias",
    "detach",
    "unbind",
    "lift_fresh",
}
"""Which are made on the host alone."""


@dataclass
class Runner:
    """Times launches that take ten microseconds."""

    launches: Sequence[Callable[[], object]]
    rounds: int
    timer: str = "cuda_event_cold"

    def batch(self, count: int) -> Batch:
        return Batch([_SECONDS] * count, 1.98e9, 0, count * _SECONDS)

    def rest(self, count: int) -> None:
        self.once()

    def once(self) -> None:
        for launch in self.launches:
            launch()


@dataclass
class Board:
    """The harness's device; `waits` counts how often the host waited for all of it."""

    places: int
    waits: int = 0
    kind: str = "cuda"
    has_one_context: bool = False
    blind: str | None = None
    highest_sm_clock_hz: float = 1.98e9
    cache_bytes: int = 60 << 20
    flush_bytes: int = 150 << 20
    device: torch.device = CPU
    cupy: object = None
    arena: Arena = field(default_factory=lambda: Arena(64 << 20, CPU))

    @contextmanager
    def stream(self) -> Iterator[None]:
        yield

    def synchronize(self) -> None:
        self.waits += 1

    def streams(self, places: int) -> tuple[int, ...]:
        return tuple(range(min(STREAMS, 2 * places)))

    def sets_needed(self, *_: object) -> int:
        return self.places

    def runner(self, _mode: str, launches: Sequence[Callable[[], object]], **_: object) -> Runner:
        return Runner(launches, -(-len(self.streams(self.places)) // self.places))

    def ordered(self, launch: Callable[[], object], of: BufferSet, *_: object) -> Look:
        self.synchronize()
        of.output.poison(buffers.POISON_NAN)
        launch()
        self.synchronize()
        return Look(of.output_tensor.clone())


class Asked(TorchDispatchMode):
    """Counts torch's calls by name, and how often the host waits for a number."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()

    @property
    def numbers(self) -> int:
        return sum(self.calls[name] for name in _ASKING)

    @property
    def kernels(self) -> int:
        """How many calls give the device work: those that are no views."""
        return self.calls.total() - sum(self.calls[name] for name in _VIEWS)

    def __torch_dispatch__(
        self, call: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        self.calls[call.name().removeprefix("aten::").split(".")[0]] += 1
        return call(*args, **(kwargs or {}))


def session(
    monkeypatch: pytest.MonkeyPatch, folder: Path, nvml: FakeNvml, places: int
) -> tuple[Session, Board]:
    """Return a session whose only device is a board with so many places, and the board."""
    monkeypatch.setattr(buffers, "GUARD_BYTES", 512)
    for held in (buffers.BufferSet, buffers.BufferSets):
        monkeypatch.setattr(held, "intact", held.intact_at_once)
    monkeypatch.setattr(timing, "GpuAllocations", _NoAllocations)
    made, board = Session(Settings(max_samples=64)), Board(places)
    watch = Watch(handle=1, nvml=nvml, processes=Processes(UUID, folder))
    lock = DeviceLock(UUID, timeout_s=5, folder=folder)
    lock.join()
    given: Any = board
    bench = Bench(given, made.settings, watch, {"backend": "cuda"}, {"uuid": UUID}, lock)
    peaks = Peaks(4.9e12, 4.1e12, "driver", 4.2e12, 6.7e13, 3e-6)
    monkeypatch.setattr(Bench, "peaks", lambda *_: peaks)
    made._benches[CPU] = bench
    return made, board


class _NoAllocations:
    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def found(self) -> None:
        return None
