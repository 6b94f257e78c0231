"""A CUDA whose devices are the CPU's memory: streams order nothing, events read the host clock.

It lets the branches for a GPU run where there is none. Times mean nothing.
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.state import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

CPU = torch.device("cpu")


class Stream:
    """A stream that does everything at once."""

    def __init__(self, device: torch.device = CPU) -> None:
        self.device = device

    def wait_event(self, event: Event) -> None:
        assert event.at is not None, "a stream waits for an event that was never recorded"

    def synchronize(self) -> None:
        pass


@dataclass
class Event:
    """An event that knows when it was recorded. `late` ones are done when first asked."""

    enable_timing: bool = False
    at: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        assert self.at is not None
        assert other.at is not None
        return (other.at - self.at) * 1e3 + 1e-6


class RuntimeRefusalError(RuntimeError):
    """What CuPy raises for an error of the runtime."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


@dataclass
class Gpu:
    """The harness's device on the fake: `enable_status` is what enabling peers answers."""

    index: int = 0
    enable_status: int = 0
    spins: Counter[int] = field(default_factory=Counter)
    kind: str = "cuda"

    @property
    def device(self) -> Any:
        return CPU

    @property
    def properties(self) -> Any:
        return SimpleNamespace(uuid=f"uuid-{self.index}")

    @property
    def kernels(self) -> Any:
        def copy(source: int, target: int, size: int) -> None:
            ctypes.memmove(target, source, size)

        return SimpleNamespace(spin=lambda ns: self.spins.update([ns]), copy=copy)

    @property
    def runtime(self) -> Any:
        def enable(peer: int | None) -> None:
            if self.enable_status:
                raise RuntimeRefusalError(self.enable_status)

        return SimpleNamespace(deviceEnablePeerAccess=enable, CUDARuntimeError=RuntimeRefusalError)

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        yield Stream()

    def synchronize(self) -> None:
        pass


def bench(**given: Any) -> Any:
    """Return a bench on the fake, without NVML."""
    return SimpleNamespace(device=Gpu(**given), watch=Watch(absent="NVML is absent"))


def install(monkeypatch: pytest.MonkeyPatch, *, access: bool = True) -> None:
    """Put the fake in torch's place."""

    @contextmanager
    def entered(stream: Stream) -> Iterator[None]:
        assert isinstance(stream, Stream)
        yield

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device=None: None)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda _one, _other: access)
