"""Compile what the chosen tests launch before the first of them runs, several sources at once.

On a machine whose cache of compiled kernels is empty, such as a fresh CI runner, compiling one
source after the other takes longer than any other part of a quick run.
"""

from __future__ import annotations

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from perftests.options import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perftests.suite import Problem

NAME = "perftests.ahead"
"""Under which pytest knows the plugin."""


class CompileAhead:
    """Compiles when pytest knows which tests are left; parallel workers share the work anyway."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Prepare what the tests of the suite launch."""
        if session.config.option.collectonly or worker_count() > 1:
            return
        found = (getattr(item, "callspec", None) for item in session.items)
        asked = (spec.params.get("problem") for spec in found if spec is not None)
        compile_ahead(problem for problem in asked if problem is not None)


def compile_ahead(problems: Iterable[Problem]) -> None:
    """Prepare each implementation and dtype of the problems once, a thread a source.

    What fails to compile is left to the test that needs it, which tells it as its own.
    """
    sources: dict[str, dict[tuple[str, str], Problem]] = defaultdict(dict)
    for problem in problems:
        key = (problem.implementation.name, problem.case.dtype)
        sources[problem.implementation.source_file].setdefault(key, problem)
    if not sources:
        return
    with ThreadPoolExecutor(min(len(sources), os.cpu_count() or 1)) as pool:
        list(pool.map(_prepare, [list(each.values()) for each in sources.values()]))


def _prepare(problems: list[Problem]) -> None:
    for problem in problems:
        device, dtype = problem.device, problem.case.torch_dtype
        with suppress(Exception):
            if problem.implementation.unavailable(device, dtype) is None:
                problem.implementation.prepare(device, dtype)
