"""Progress of a timing session: case, k of n, time left.

On a terminal one line is rewritten. Elsewhere, as in CI, a plain line comes every quarter of a
minute. Under parallel workers the controller tells it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVERY_S = 15.0
"""Seconds between plain lines."""
_WIDEST = 78


class Terminal(Protocol):
    """What is used of pytest's terminal reporter."""

    isatty: bool

    def rewrite(self, line: str, **markup: bool) -> None:
        """Write over the current line."""

    def ensure_newline(self) -> None:
        """End a line that has begun."""

    def write_line(self, line: str | bytes, **markup: bool) -> None:
        """Write a whole line."""


@dataclass(eq=False)
class Progress:
    """Counts the cases that are done, and tells."""

    terminal: Terminal
    moving: bool
    clock: Callable[[], float] = time.monotonic
    _cases: set[str] = field(default_factory=set)
    _done: int = 0
    _began: float | None = None
    _told: float = 0.0

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note the cases to come."""
        self._cases.update(nodeids)
        if self._began is None:
            self._began = self._told = self.clock()

    def finished(self, nodeid: str) -> None:
        """Note that a case is done and tell, if it is time."""
        if nodeid not in self._cases or self._began is None:
            return
        self._done += 1
        now = self.clock()
        line = self._line(nodeid, now - self._began)
        if self.moving:
            self.terminal.rewrite(line[:_WIDEST], erase=True)
            if self._done == len(self._cases):
                self.terminal.ensure_newline()
        elif now - self._told >= EVERY_S:
            self._told = now
            self.terminal.ensure_newline()
            self.terminal.write_line(line)

    def _line(self, nodeid: str, elapsed_s: float) -> str:
        count = len(self._cases)
        left = elapsed_s / self._done * (count - self._done)
        case = nodeid.rsplit("::", maxsplit=1)[-1]
        return f"bandwatch: {self._done} of {count}, about {left:.0f} s left, done {case}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the cases of this process."""
        self.expect(
            item.nodeid
            for item in session.items
            if "gpu_benchmark" in getattr(item, "fixturenames", ())
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Take the tests that the workers share."""
        del node
        self.expect(ids)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: when it ran, or when its setup kept it from running."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self.finished(report.nodeid)


def follow(config: pytest.Config) -> None:
    """Tell the progress of this session, unless another process or a verbose pytest does."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(config, "workerinput")
    if terminal is None or is_worker or config.get_verbosity() > 0:
        return
    moving = bool(terminal.isatty) and not os.environ.get("CI")
    config.pluginmanager.register(Progress(terminal, moving), "perftests.progress")
