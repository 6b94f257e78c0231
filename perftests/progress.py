"""Progress of a timing session: case, k of n, time left.

On a terminal it is one line that moves along below pytest's dots. Elsewhere, as in CI, a plain line
comes every quarter of a minute. Under parallel workers the controller tells it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

import pytest

from perftests.options import measures

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

EVERY_S = 15.0
"""Seconds between plain lines."""
# Control sequences of a terminal (ECMA-48, DEC VT100). Down and up keep the column; down at the
# last row scrolls, which is why the cursor goes down and up again before its place is kept.
_DOWN, _UP, _KEEP, _BACK, _ERASE = "\x1bD", "\x1bM", "\x1b7", "\x1b8", "\x1b[2K"


class Terminal(Protocol):
    """What is used of pytest's terminal reporter."""

    isatty: bool

    def ensure_newline(self) -> None:
        """End a line that has begun."""

    def write_line(self, line: str | bytes, **markup: bool) -> None:
        """Write a whole line."""


@dataclass(eq=False)
class LineBelow:
    """A line below the one that pytest writes on, whose place and column are left as they were.

    It has to be gone before pytest writes, which may go on to the row that it stands on.
    """

    stream: TextIO
    _drawn: bool = False

    def draw(self, text: str) -> None:
        """Show the text, as much of it as one row takes."""
        room = shutil.get_terminal_size().columns - 1
        self._write(f"{_DOWN}{_UP}{_KEEP}{_DOWN}\r{_ERASE}{text[:room]}{_BACK}")
        self._drawn = True

    def erase(self) -> None:
        """Take the text away where it stands."""
        if self._drawn:
            self._write(f"{_KEEP}{_DOWN}{_ERASE}{_BACK}")
        self._drawn = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@dataclass(eq=False)
class Progress:
    """Counts the cases that are done, and tells: in a `below` where there is one, else by lines."""

    terminal: Terminal
    below: LineBelow | None = None
    clock: Callable[[], float] = time.monotonic
    _cases: set[str] = field(default_factory=set)
    _done: int = 0
    _began: float | None = None
    _told: float = 0.0
    _text: str = ""

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
        self._text = self._line(nodeid, now - self._began)
        if self.below is None and now - self._told >= EVERY_S:
            self._told = now
            self.terminal.ensure_newline()
            self.terminal.write_line(self._text)

    def show(self) -> None:
        """Draw what there is to see while further cases are measured."""
        if self.below is not None and self._text and self._done < len(self._cases):
            self.below.draw(self._text)

    def hide(self) -> None:
        """Make room for pytest."""
        if self.below is not None:
            self.below.erase()

    def _line(self, nodeid: str, elapsed_s: float) -> str:
        count = len(self._cases)
        left = elapsed_s / self._done * (count - self._done)
        # In ASCII: each character takes one column, and none moves the cursor.
        case = ascii(nodeid.rsplit("::", maxsplit=1)[-1])[1:-1]
        return f"bandwatch: {self._done} of {count}, about {left:.0f} s left, done {case}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the cases of this process."""
        self.expect(item.nodeid for item in session.items if measures(item))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Take the tests that the workers share."""
        del node
        self.expect(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Keep out of the way while pytest names the file."""
        return (yield from self._aside())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, object, object]:
        """Count a test once: when it ran, or when its setup kept it from running."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self.finished(report.nodeid)
        return (yield from self._aside())

    @pytest.hookimpl(optionalhook=True, wrapper=True)
    def pytest_testnodedown(self) -> Generator[None, object, object]:
        """Keep out of the way while a parallel worker's end is told."""
        return (yield from self._aside())

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        """Leave the terminal to what is told now."""
        self.hide()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Leave the terminal to the summary."""
        self.hide()

    def _aside(self) -> Generator[None, object, object]:
        self.hide()
        try:
            return (yield)
        finally:
            self.show()


def follow(config: pytest.Config) -> None:
    """Tell the progress of this session, unless another process or a verbose pytest does."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(config, "workerinput")
    if terminal is None or is_worker or config.get_verbosity() > 0:
        return
    below = LineBelow(sys.stdout) if terminal.isatty and _may_move(config) else None
    config.pluginmanager.register(Progress(terminal, below), "perftests.progress")


def _may_move(config: pytest.Config) -> bool:
    """Whether pytest alone writes while tests run, on a terminal whose cursor can be moved."""
    prints = config.getoption("capture") == "no" or bool(config.getini("log_cli"))
    return not prints and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
