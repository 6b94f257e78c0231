"""One tensor over several devices, a stream each: resident, or scattered, computed and gathered.

On a CPU the devices are threads.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import torch

from kernels.registry import get
from perftests.harness.cpu import hold_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS, TIMES = 20, 9
_EVEN = 1024
"""Shards begin at multiples of this many elements: every device's data is aligned."""


def parts(count: int, shards: int) -> list[slice]:
    """Return the parts of `count` elements, as even as their alignment lets them be."""
    size = -(-count // shards // _EVEN) * _EVEN
    return [slice(min(i * size, count), min((i + 1) * size, count)) for i in range(shards)]


class Shards(Protocol):
    """A tensor in shards. Each step enqueues for all shards; `wait` waits for all devices."""

    def scatter(self) -> None:
        """Copy each shard from the whole tensor to its device."""

    def compute(self) -> None:
        """Compute each shard's ReLU where it is."""

    def gather(self) -> None:
        """Copy each shard's result into the whole result."""

    def wait(self) -> None:
        """Wait for every device."""

    def wrong(self) -> int:
        """Return how many elements of all shards' results are wrong."""

    def gathered_wrong(self) -> int:
        """Return how many elements of the whole result are wrong, and wipe it out."""


def whole(count: int, device: torch.device) -> torch.Tensor:
    """Return the tensor that is split: values of both signs."""
    return torch.linspace(-1, 1, count, device=device)


class GpuShards:
    """A shard on each GPU; the first GPU holds the whole tensor, and its shard stays in place."""

    def __init__(self, count: int, devices: Sequence[torch.device]) -> None:
        self._devices = list(devices)
        home = devices[0]
        self._x, self._y = whole(count, home), torch.full((count,), -1.0, device=home)
        self._relu = get("relu", "cuda_vector")
        self._parts = parts(count, len(devices))
        self._own = [torch.cuda.Stream(device) for device in devices]
        # A copy runs in a stream of its source: one for each peer, that they run at once.
        self._home = [torch.cuda.Stream(home) for _ in devices]
        self._ins = [self._place(self._x, i) for i in range(len(devices))]
        self._outs = [self._place(self._y, i) for i in range(len(devices))]
        self.wait()

    def _place(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        """Return a shard on its device: a view of the whole at home, a copy elsewhere."""
        view = tensor[self._parts[index]]
        return view if index == 0 else view.to(self._devices[index], copy=True)

    def scatter(self) -> None:
        """Copy each shard from the whole tensor to its device."""
        for index in range(1, len(self._devices)):
            with torch.cuda.stream(self._own[index]), torch.cuda.stream(self._home[index]):
                self._ins[index].copy_(self._x[self._parts[index]], non_blocking=True)

    def compute(self) -> None:
        """Launch on each GPU, in its own stream."""
        for stream, x, y in zip(self._own, self._ins, self._outs, strict=True):
            with torch.cuda.stream(stream):
                self._relu(x, out=y)

    def gather(self) -> None:
        """Copy each shard's result into the whole result."""
        for index in range(1, len(self._devices)):
            with torch.cuda.stream(self._home[index]), torch.cuda.stream(self._own[index]):
                self._y[self._parts[index]].copy_(self._outs[index], non_blocking=True)

    def wait(self) -> None:
        """Wait for every GPU."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def wrong(self) -> int:
        """Return how many elements of all shards' results are wrong."""
        return sum(
            int((y != x.clamp_min(0)).sum()) for x, y in zip(self._ins, self._outs, strict=True)
        )

    def gathered_wrong(self) -> int:
        """Return how many elements of the whole result are wrong, and wipe all of it out."""
        found = int((self._y != self._x.clamp_min(0)).sum())
        self._y.fill_(-1)
        for shard in (*self._ins[1:], *self._outs[1:]):
            shard.fill_(-1)
        self.wait()
        return found


class CpuShards:
    """A shard for each thread; all of them and the whole tensor are in the same memory."""

    def __init__(self, count: int, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, initializer=hold_threads, initargs=(1,))
        cpu = torch.device("cpu")
        self._x, self._y = whole(count, cpu), torch.full((count,), -1.0)
        self._parts = parts(count, threads)
        self._ins = [self._x[part].clone() for part in self._parts]
        self._outs = [torch.full_like(x, -1.0) for x in self._ins]
        self._relu = get("relu", "cuda_vector")

    def _each(self, step: Callable[[int], object]) -> None:
        list(self._pool.map(step, range(len(self._parts))))

    def scatter(self) -> None:
        """Copy each shard to its thread's memory."""
        self._each(lambda i: self._ins[i].copy_(self._x[self._parts[i]]))

    def compute(self) -> None:
        """Compute each shard in its thread."""
        self._each(lambda i: self._relu(self._ins[i], out=self._outs[i]))

    def gather(self) -> None:
        """Copy each shard's result into the whole result."""
        self._each(lambda i: self._y[self._parts[i]].copy_(self._outs[i]))

    def wait(self) -> None:
        """Return: every step has waited for its threads."""

    def wrong(self) -> int:
        """Return how many elements of all shards' results are wrong."""
        return sum(
            int((y != x.clamp_min(0)).sum()) for x, y in zip(self._ins, self._outs, strict=True)
        )

    def gathered_wrong(self) -> int:
        """Return how many elements of the whole result are wrong, and wipe all of it out."""
        found = int((self._y != self._x.clamp_min(0)).sum())
        for tensor in (self._y, *self._ins, *self._outs):
            tensor.fill_(-1)
        return found


def times(shards: Shards, steps: Sequence[Callable[[], None]], *, rounds: int = 1) -> list[float]:
    """Return the times of the steps in order for all shards, `rounds` times without a wait between.

    Host clock, from an idle machine to an idle one, divided by `rounds`, in seconds.
    """
    found = []
    for _ in range(TIMES + 1):
        shards.wait()
        began = time.perf_counter()
        for _ in range(rounds):
            for step in steps:
                step()
        shards.wait()
        found.append((time.perf_counter() - began) / rounds)
    return found[1:]
