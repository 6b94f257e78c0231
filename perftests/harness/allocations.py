"""Notice allocations in the timed region: they cost time, and their cost depends on history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch.autograd.profiler import profile  # that of torch.profiler imports Dynamo: 1 s

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_TOLERATED_BYTES = 4096
"""On a CPU: scalars that torch wraps into tensors of no size worth naming."""


class GpuAllocations:
    """Counts device allocations through torch and CuPy between entry and exit."""

    def __init__(self, device: torch.device, cupy: Any) -> None:
        self._device = device
        self._hook = _counting_hook(cupy)
        self._before = 0
        self.torch_count = 0

    def __enter__(self) -> Self:
        self._before = self._torch_allocations()
        self._hook.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.__exit__(kind, error, trace)
        self.torch_count = self._torch_allocations() - self._before

    def _torch_allocations(self) -> int:
        stats = torch.cuda.memory.memory_stats_as_nested_dict(self._device)
        return int(stats["allocation"]["all"]["allocated"]) if stats else 0

    def found(self) -> str | None:
        """Return what was allocated, or None."""
        counts = {"torch": self.torch_count, "CuPy": self._hook.count}
        named = [f"{count} through {name}" for name, count in counts.items() if count]
        return f"{' and '.join(named)} allocations while timing" if named else None


def _counting_hook(cupy: Any) -> Any:
    class CountingHook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "bandwatch allocations"
        count = 0

        def malloc_preprocess(self, **_: object) -> None:
            self.count += 1

    return CountingHook()


def cpu_allocation(launch: Callable[[], object]) -> str | None:
    """Return what one launch allocates through torch on a CPU, or None below 4 KiB."""
    with profile(profile_memory=True) as seen:
        launch()
    size = sum(max(0, event.self_cpu_memory_usage) for event in seen.key_averages())
    if size <= _TOLERATED_BYTES:
        return None
    return f"{size} bytes allocated through torch in one launch"
