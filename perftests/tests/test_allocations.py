"""Allocations between entry and exit, through torch and CuPy. No GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pytest
import torch

from perftests.harness.allocations import GpuAllocations

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryHook:
    """CuPy's hook: those that are entered are told of each allocation."""

    entered: ClassVar[list[Any]] = []

    def __enter__(self) -> Self:
        MemoryHook.entered.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        MemoryHook.entered.remove(self)


CUPY = SimpleNamespace(cuda=SimpleNamespace(MemoryHook=MemoryHook))


@pytest.fixture
def through_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Allocate through torch, which counts from the start of the process."""
    counts = {"allocation": {"all": {"allocated": 1000}}}

    def one() -> None:
        counts["allocation"]["all"]["allocated"] += 1

    monkeypatch.setattr(torch.cuda.memory, "memory_stats_as_nested_dict", lambda _device: counts)
    return one


def through_cupy() -> None:
    for hook in MemoryHook.entered:
        hook.malloc_preprocess(device_id=0, size=8, mem_size=512)


def watch() -> GpuAllocations:
    return GpuAllocations(torch.device("cpu"), CUPY)


def test_none_between_entry_and_exit_is_none(through_torch: Callable[[], None]) -> None:
    through_torch()
    with watch() as seen:
        pass
    through_torch()
    through_cupy()
    assert seen.found() is None


def test_each_is_counted_under_the_name_of_its_library(through_torch: Callable[[], None]) -> None:
    with watch() as seen:
        through_torch()
        through_torch()
        through_cupy()
    assert seen.found() == "2 through torch and 1 through CuPy allocations while timing"
    with watch() as seen:
        through_cupy()
    assert seen.found() == "1 through CuPy allocations while timing"
    with watch() as seen:
        through_torch()
    assert seen.found() == "1 through torch allocations while timing"


def test_the_hook_is_taken_out_though_a_launch_raises(through_torch: Callable[[], None]) -> None:
    def fails() -> None:
        with watch():
            through_torch()
            raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        fails()
    assert MemoryHook.entered == []


def test_a_device_that_has_never_allocated_counts_from_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda.memory, "memory_stats_as_nested_dict", lambda _device: {})
    with watch() as seen:
        pass
    assert seen.found() is None
