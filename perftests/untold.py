"""An error that a CUDA call returned and nobody looked at: the runtime keeps it for who asks next.

torch asks after each of its kernels. So a launch from C++ without a check would fail the next test
that launches, and not its own. Here each test is asked for what it left behind, which clears it.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests.lost import LOST, loaded_driver
from perftests.options import measures

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_MAPS = Path("/proc/self/maps")
_LIBRARY = re.compile(r" (/(?:[^\n]*/)?libcudart[^/\n]*?)(?: \(deleted\))?$", re.MULTILINE)
"""The path at a line's end, whatever stands in it."""
_NO_ERROR = frozenset({0, 600})
"""Success, and what an event or a stream that is not done yet answers when it is queried."""
_load = ctypes.CDLL
"""Bound before a test could replace it."""


class UntoldWatch:
    """Asks at the end of each test of a session that measures."""

    def __init__(self) -> None:
        self._measures = False
        self._modules = 0
        self._runtimes: list[Any] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave a session alone in which nothing is measured: its tests are no concern of ours."""
        self._measures = any(map(measures, session.items))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Warn of what a test left behind; of a lost device there is more to say elsewhere."""
        try:
            return (yield)
        finally:  # one whose teardown fails leaves no less
            if self._measures and LOST not in item.config.stash:
                self._warn()

    def _warn(self) -> None:
        if len(sys.modules) != self._modules:  # what is imported may load a runtime of its own
            self._modules = len(sys.modules)
            self._runtimes = loaded_runtimes()
        told = untold_by(self._runtimes)
        if told is not None:
            warnings.warn(pytest.PytestWarning(told), stacklevel=1)


def loaded_runtimes(maps: Path = _MAPS) -> list[Any]:
    """Return the CUDA runtimes that this process has loaded; none is loaded by asking."""
    if loaded_driver() is None or not maps.exists():
        return []
    found = []
    for path in sorted(set(_LIBRARY.findall(maps.read_text(errors="surrogateescape")))):
        with suppress(OSError):  # replaced on the disk since
            found.append(_load(path, mode=os.RTLD_NOLOAD))
    return found


def untold_by(runtimes: Iterable[Any]) -> str | None:
    """Return in one line the errors that runtimes have kept, None without one; clear them."""
    kept = [(runtime, int(runtime.cudaGetLastError())) for runtime in runtimes]
    names = [_named(runtime, code) for runtime, code in kept if code not in _NO_ERROR]
    if not names:
        return None
    return (
        f"a CUDA call of this test failed and nothing told so: {', '.join(names)}; check the error "
        "of each call and each launch"
    )


def _named(runtime: Any, code: int) -> str:
    ask = runtime.cudaGetErrorName
    ask.restype = ctypes.c_char_p
    return f"{(ask(code) or b'CUDA error').decode()} ({code})"
