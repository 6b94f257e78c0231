"""Which of our processes use a device, and what each does there: lines of a file beside the lock.

The lock itself does not say who holds it. Who dies leaves its line behind, so a line counts only
while its process lives, told from a later one of the same number by when it began. Names are kept
as well as can be: where the file cannot be had, nothing waits and nothing fails.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perftests.harness.device_files import alone_for_a_moment, device_file, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RUN = "BANDWATCH_PROCESSES_OF"
"""What all processes of one call share: whoever is first sets it, the others inherit it."""
_XDIST = "PYTEST_XDIST_TESTRUNUID"
_MOST_BYTES = 1 << 16
_MOST_NAMED = 3
_MOST_FOREIGN = 64
"""Of other containers, which cannot be looked into: the oldest go, or the file would only grow."""
_LONGEST_COMMAND = 120
_count = itertools.count()


class Doing(StrEnum):
    """What a process does on a device, as a message tells it."""

    USES = "uses it"
    CHECKS = "has held it to check"
    TIMES = "has held it to time"
    WAITS = "has waited to time on it"


@dataclass(frozen=True)
class Line:
    """One process on a device; `began` is in the system's ticks, `namespace` numbers it."""

    key: str
    pid: int
    began: str
    namespace: str
    run: str
    user: str
    command: str
    doing: str
    since: str

    def __str__(self) -> str:
        """Return who does what since when."""
        there = "" if self.namespace == _us().namespace else "another container's "
        who = f"{there}process {self.pid} of user {self.user}"
        return f"{who} {self.doing} since {self.since} ({self.command})"

    def lives(self) -> bool:
        """Return whether its process may still live; in another container none can tell."""
        us = _us()
        if self.namespace != us.namespace:
            return True
        if self.pid == us.pid:
            return self.began == us.began
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's
            pass
        return _began(self.pid) in {self.began, None}


_NAMES = {known.name for known in fields(Line)}


class Processes:
    """The processes that use one device, all users' of this machine."""

    def __init__(self, uuid: str, folder: Path | None = None) -> None:
        self._path = device_file(uuid, "processes", folder)
        self._seen: tuple[bytes, list[Line]] = b"", []

    def join(self) -> None:
        """Tell that this process has a context on the device, until it ends."""
        line = _line(Doing.USES, f"{os.getpid()}")
        self._edit(lambda lines: [*(known for known in lines if known.key != line.key), line])

    @contextmanager
    def doing(self, what: Doing) -> Iterator[Line]:
        """Name this process while it holds the lock, or the gate in front of it.

        Nobody else times or waits to time then, and while it times nobody else checks: what says
        so was left by one who was killed, perhaps in a container that cannot be looked into.
        """
        line = _line(what, f"{os.getpid()}-{next(_count)}")
        kept = {Doing.USES} if what is Doing.TIMES else {Doing.USES, Doing.CHECKS}
        self._edit(lambda lines: [*(known for known in lines if known.doing in kept), line])
        try:
            yield line
        finally:
            self._edit(lambda lines: [known for known in lines if known.key != line.key])

    def holders(self) -> str | None:
        """Return who holds the device or waits to time on it but for us, None where unknown."""
        us = (_us().pid, _us().namespace, Doing.WAITS)
        found = [
            str(line)
            for line in self._read()
            if line.doing != Doing.USES and (line.pid, line.namespace, line.doing) != us
        ]
        more = len(found) - _MOST_NAMED
        return ", ".join(found[:_MOST_NAMED] + ([f"{more} more"] if more > 0 else [])) or None

    def of_this_run(self) -> frozenset[int]:
        """Return the numbers of this call's processes on the device, with ours."""
        mine = (_us().namespace, _run())
        others = {line.pid for line in self._read() if (line.namespace, line.run) == mine}
        return frozenset(others | {_us().pid})

    def _read(self) -> list[Line]:
        found: list[Line] = []
        with suppress(OSError), alone_for_a_moment(self._path) as file:
            found = self._living(file)
        return found

    def _edit(self, change: Callable[[list[Line]], list[Line]]) -> None:
        with suppress(OSError), alone_for_a_moment(self._path) as file:
            known = self._living(file)
            wanted = change(known)
            if wanted != known:
                # Never emptied: ext4 has the disk take part when such a file is closed, 1 ms.
                text = "".join(json.dumps(line.__dict__) + "\n" for line in wanted) or "\n"
                rewrite(file, text)
                self._seen = text.encode(), wanted

    def _living(self, file: int) -> list[Line]:
        """Return the lines of processes that may still live, parsed where they have changed."""
        text = os.pread(file, _MOST_BYTES, 0)
        if text != self._seen[0]:
            self._seen = text, _parsed(text)
        living = [line for line in self._seen[1] if line.lives()]
        foreign = [line for line in living if line.namespace != _us().namespace]
        gone = {id(line) for line in foreign[:-_MOST_FOREIGN]}
        return [line for line in living if id(line) not in gone]


def _parsed(text: bytes) -> list[Line]:
    """Return the lines of a file; what is no such line is left out."""
    found = []
    for each in text.decode(errors="replace").splitlines():
        with suppress(ValueError, RecursionError):
            data = json.loads(each)
            if isinstance(data, dict) and set(data) == _NAMES:
                found.append(Line(**{name: _kept(name, value) for name, value in data.items()}))
    return found


def _kept(name: str, value: object) -> Any:
    """Return a value as it may stand in a message, for any user can write the file."""
    if name == "pid":
        if type(value) is not int or not 0 < value < 1 << 31:
            raise ValueError(value)
        return value
    return "".join(c for c in str(value) if c.isprintable())[:_LONGEST_COMMAND]


def _line(what: Doing, key: str) -> Line:
    us = _us()
    return Line(
        key=key,
        pid=us.pid,
        began=us.began,
        namespace=us.namespace,
        run=_run(),
        user=us.user,
        command=_kept("command", " ".join(sys.argv)),
        doing=what,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _run() -> str:
    """Return what this call's processes share: parent, children, and workers side by side."""
    known = os.environ.get(_RUN)
    if known is not None:
        return known
    own = os.environ.get(_XDIST) or f"{_us().pid}-{_us().began}"
    return os.environ.setdefault(_RUN, own)


class _Us(NamedTuple):
    """What never changes about this process."""

    pid: int
    began: str
    namespace: str
    user: str


@cache
def _us() -> _Us:
    """Return what tells this process from others: asked of the system once, in a fork anew."""
    pid = os.getpid()
    user = _kept("user", os.environ.get("USER") or os.getuid())
    return _Us(pid, _began(pid) or "", _namespace(), user)


os.register_at_fork(after_in_child=_us.cache_clear)


def _namespace() -> str:
    """Return what numbers processes here: those of another container are numbered otherwise."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _began(pid: int) -> str | None:
    """Return when a process began, a word of its own for one that has ended, None if unknown."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "ended" if words[0] in "ZX" else words[19]
