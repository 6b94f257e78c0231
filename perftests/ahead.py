"""Compile what the chosen tests launch before the first of them runs, several modules at once.

On a machine whose cache of compiled kernels is empty, such as a fresh CI runner, compiling one
after the other takes longer than any other part of a quick run.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import pytest

from perftests.harness.errors import HarnessError
from perftests.options import worker_count
from perftests.plugin import session_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    import torch

    from kernels.implementation import Implementation
    from perftests.harness.session import Session

Needed: TypeAlias = "tuple[Implementation, torch.device, torch.dtype]"
"""An implementation, and the device and dtype that it is launched with."""
NAME = "perftests.ahead"
"""Under which pytest knows the plugin."""


class CompileAhead:
    """Compiles when pytest knows which tests are left; parallel workers share the work anyway."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None]:
        """Prepare what the tests of the suite launch, once the tests are counted."""
        yield
        if session.config.option.collectonly or session.testsfailed or worker_count() > 1:
            return
        needed = [each for item in session.items if (each := _needed(item)) is not None]
        if needed:
            with suppress(HarnessError):  # the first test says the same as its own
                compile_ahead(needed, session_of(session.config))


def _needed(item: pytest.Item) -> Needed | None:
    """Return what a test of the suite launches; None for any other test."""
    from perftests.suite import problem_of

    problem = problem_of(item)
    if problem is None or item.get_closest_marker("skip"):
        return None
    return problem.implementation, problem.device, problem.case.torch_dtype


def compile_ahead(needed: Iterable[Needed], session: Session) -> None:
    """Prepare each module once, beside others who compile and check but not beside who times.

    What fails to compile is left to the test that needs it, which tells it as its own.
    """
    modules = {one.module_key(device, dtype): (one, device, dtype) for one, device, dtype in needed}
    modules.pop(None, None)
    if not modules:
        return
    _, device, _ = next(iter(modules.values()))
    threads = min(len(modules), len(os.sched_getaffinity(0)))
    with session.bench(device).lock.shared(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(_prepare, modules.values()))


def _prepare(needed: Needed) -> None:
    implementation, device, dtype = needed
    with suppress(Exception):
        implementation.prepare(device, dtype)
