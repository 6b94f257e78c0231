"""A terminal in a few lines: what a person sees of what a program wrote, and a program run in one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_TOKEN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|.", re.DOTALL)


@dataclass
class Screen:
    """Rows of text and a cursor, with the control sequences that pytest and ours write.

    A character in the last column leaves the cursor there until the next one, as a VT100 does.
    Raises ValueError for a sequence that it does not know.
    """

    columns: int
    height: int
    gone: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    row: int = 0
    column: int = 0
    _kept: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Begin with an empty screen."""
        self.rows = [[" "] * self.columns for _ in range(self.height)]

    def seen(self) -> list[str]:
        """Return all rows, those that scrolled away first."""
        return [*self.gone, *("".join(row).rstrip() for row in self.rows)]

    def feed(self, text: str) -> Iterator[str]:
        """Take what a program wrote; yield each control sequence once it is done."""
        for token in _TOKEN.findall(text):
            if token.startswith("\x1b"):
                self._control(token)
                yield token
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self._down()
            else:
                self._put(token)

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self.column = 0
            self._down()
        self.rows[self.row][self.column] = character
        self.column += 1

    def _down(self) -> None:
        if self.row + 1 < self.height:
            self.row += 1
            return
        self.gone.append("".join(self.rows.pop(0)).rstrip())
        self.rows.append([" "] * self.columns)

    def _control(self, token: str) -> None:
        match token:
            case "\x1bD":
                self._down()
            case "\x1bM":
                self.row = max(self.row - 1, 0)
            case "\x1b7":
                self._kept = (self.row, self.column)
            case "\x1b8":
                self.row, self.column = self._kept
            case "\x1b[2K":
                self.rows[self.row] = [" "] * self.columns
            case _ if token.startswith("\x1b[") and token.endswith("m"):
                pass  # a colour
            case _:
                raise ValueError(f"the screen does not know {token!a}")


def in_a_terminal(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], columns: int, height: int
) -> str:
    """Return what a command wrote on a terminal of this size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        written = b"".join(_until_the_end(ours))
        process.wait(timeout=60)
    os.close(ours)
    return written.decode()


def _until_the_end(file: int) -> Iterator[bytes]:
    while True:
        try:
            read = os.read(file, 1 << 16)
        except OSError:  # nobody has the other end any more
            return
        if not read:
            return
        yield read
