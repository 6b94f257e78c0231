"""Modules are compiled side by side before the first test; who fails is left to its test."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from perftests.ahead import compile_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from perftests.ahead import Needed

pytest_plugins = ["pytester"]

CPU = torch.device("cpu")
TESTS = """
import pytest
from perftests.suite import Problem, pytest_generate_tests

KERNEL = "relu"

def test_relu(problem: Problem, gpu_benchmark):
    problem.run(gpu_benchmark)
"""
FOREIGN = """
import pytest

@pytest.mark.parametrize("problem", ["easy"])
def test_foreign(problem):
    assert problem == "easy"
"""


@dataclass
class Here:
    """A session whose lock notes whether it is held."""

    held: bool = False
    seen: list[bool] = field(default_factory=list)

    def bench(self, device: torch.device) -> Any:
        assert device == CPU
        return SimpleNamespace(lock=self)

    @contextmanager
    def shared(self) -> Iterator[None]:
        self.held = True
        yield
        self.held = False


@dataclass
class Implementation:
    """Notes what was prepared; those of one `module` share it."""

    name: str
    module: str | None
    done: list[tuple[str, torch.dtype]]
    here: Here
    barrier: threading.Barrier | None = None
    error: Exception | None = None

    def module_key(self, _device: torch.device, dtype: torch.dtype) -> object:
        return self.module and (self.module, dtype)

    def prepare(self, _device: torch.device, dtype: torch.dtype) -> None:
        assert self.module is not None
        assert self.here.held
        if self.error is not None:
            raise self.error
        if self.barrier is not None:
            self.barrier.wait(timeout=30)
        self.done.append((self.name, dtype))


def needed(one: Implementation, dtype: torch.dtype = torch.float32) -> Needed:
    return cast("Needed", (one, CPU, dtype))


def test_each_module_is_prepared_once_and_what_has_none_is_left_alone() -> None:
    done: list[Any] = []
    here: Any = Here()
    one, two, none = (
        Implementation(name, module, done, here)
        for name, module in (("one", "a"), ("two", "a"), ("none", None))
    )
    compile_ahead(
        [needed(one), needed(one), needed(two), needed(one, torch.float16), needed(none)], here
    )
    assert len(done) == 2
    assert {dtype for _, dtype in done} == {torch.float32, torch.float16}


def test_without_a_module_no_device_is_opened() -> None:
    session: Any = None
    compile_ahead([needed(Implementation("none", None, [], Here()))], session)


def test_modules_are_compiled_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other: one after the other they would never end."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})
    done: list[Any] = []
    here: Any = Here()
    both = threading.Barrier(2)
    compile_ahead([needed(Implementation(n, n, done, here, barrier=both)) for n in "ab"], here)
    assert {name for name, _ in done} == {"a", "b"}


def test_what_fails_keeps_no_other_from_it() -> None:
    done: list[Any] = []
    here: Any = Here()
    broken = Implementation("broken", "a", done, here, error=RuntimeError("no such header"))
    compile_ahead([needed(broken), needed(Implementation("good", "b", done, here))], here)
    assert [name for name, _ in done] == ["good"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)  # where this runs in a worker
    return tmp_path / "cache"


def built(cache: Path) -> int:
    return len([path for path in cache.glob("*.so") if path.name.startswith("relu-host")])


def test_a_run_compiles_before_its_first_test_and_once(
    pytester: pytest.Pytester, cache: Path
) -> None:
    """Another test's parameter may have the same name."""
    pytester.makepyfile(test_ours=TESTS, test_foreign=FOREIGN)
    pytester.makeconftest(
        "import os, pathlib\n"
        "def pytest_runtest_setup(item):\n"
        f"    found = list(pathlib.Path({str(cache)!r}).glob('relu-host*.so'))\n"
        "    assert len(found) == 1\n"
    )
    flags = ("-p", "perftests.plugin", "-p", "no:tracker.pytest_plugin", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*flags, "--bandwatch-device=cpu", "--bandwatch-quick")
    outcomes = result.parseoutcomes()
    assert "failed" not in outcomes
    assert "errors" not in outcomes
    assert outcomes["passed"] > 1
    assert built(cache) == 1


def test_parallel_workers_compile_as_they_come_to_it(
    pytester: pytest.Pytester, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    pytester.makepyfile(test_ours=TESTS)
    pytester.makeconftest(
        "import pytest\ndef pytest_runtest_setup(item):\n    pytest.exit('enough')\n"
    )
    flags = ("-p", "perftests.plugin", "-p", "no:tracker.pytest_plugin", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*flags, "--bandwatch-device=cpu", "--bandwatch-quick")
    assert built(cache) == 0


def test_nothing_is_compiled_for_tests_that_do_not_run(
    pytester: pytest.Pytester, cache: Path
) -> None:
    pytester.makepyfile(test_ours=TESTS, test_broken="import nothing_of_that_name")
    flags = ("-p", "perftests.plugin", "-p", "no:tracker.pytest_plugin", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*flags, "--bandwatch-device=cpu", "test_ours.py", "--co")
    pytester.runpytest_subprocess(*flags, "--bandwatch-device=cpu")
    assert built(cache) == 0
