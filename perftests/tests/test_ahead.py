"""Sources are compiled side by side before the first test; who fails is left to its test."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from perftests import ahead
from perftests.ahead import CompileAhead, compile_ahead

if TYPE_CHECKING:
    from perftests.suite import Problem

CPU = torch.device("cpu")


@dataclass
class Implementation:
    """Notes what was prepared, and in which thread."""

    name: str
    source_file: str
    done: list[tuple[str, torch.dtype, int]]
    absent: str | None = None
    barrier: threading.Barrier | None = None
    error: Exception | None = None

    def unavailable(self, _device: torch.device, _dtype: torch.dtype) -> str | None:
        return self.absent

    def prepare(self, device: torch.device, dtype: torch.dtype) -> None:
        assert device == CPU
        if self.error is not None:
            raise self.error
        if self.barrier is not None:
            self.barrier.wait(timeout=30)
        self.done.append((self.name, dtype, threading.get_ident()))


def problem(implementation: Implementation, dtype: str = "float32") -> Problem:
    case = SimpleNamespace(dtype=dtype, torch_dtype=getattr(torch, dtype))
    return cast("Problem", SimpleNamespace(implementation=implementation, case=case, device=CPU))


def test_each_implementation_and_dtype_is_prepared_once() -> None:
    done: list[Any] = []
    one, two = Implementation("one", "a.cu", done), Implementation("two", "a.cu", done)
    compile_ahead([problem(one), problem(one), problem(two), problem(one, "float16")])
    assert [(name, dtype) for name, dtype, _ in done] == [
        ("one", torch.float32),
        ("two", torch.float32),
        ("one", torch.float16),
    ]
    assert len({thread for *_, thread in done}) == 1, "two would compile the same source twice"


def test_different_sources_are_compiled_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other: one after the other they would never end."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    done: list[Any] = []
    both = threading.Barrier(2)
    compile_ahead(
        [problem(Implementation(name, f"{name}.cu", done, barrier=both)) for name in ("a", "b")]
    )
    assert {name for name, *_ in done} == {"a", "b"}


def test_what_cannot_run_is_not_compiled_and_what_fails_keeps_no_other_from_it() -> None:
    done: list[Any] = []
    absent = Implementation("absent", "a.cu", done, absent="needs a GPU")
    broken = Implementation("broken", "a.cu", done, error=RuntimeError("no such header"))
    compile_ahead([problem(absent), problem(broken), problem(Implementation("good", "a.cu", done))])
    assert [name for name, *_ in done] == ["good"]


@pytest.mark.parametrize(
    ("collect_only", "workers", "prepared"), [(False, 1, 1), (True, 1, 0), (False, 2, 0)]
)
def test_only_the_tests_that_will_run_here_are_compiled_for(
    collect_only: bool, workers: int, prepared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "worker_count", lambda: workers)
    done: list[Any] = []
    ours = SimpleNamespace(params={"problem": problem(Implementation("one", "a.cu", done))})
    others = [SimpleNamespace(), SimpleNamespace(callspec=SimpleNamespace(params={"x": 1}))]
    items = [*others, SimpleNamespace(callspec=ours)]
    config = SimpleNamespace(option=SimpleNamespace(collectonly=collect_only))
    CompileAhead().pytest_collection_finish(
        cast("pytest.Session", SimpleNamespace(items=items, config=config))
    )
    assert len(done) == prepared
