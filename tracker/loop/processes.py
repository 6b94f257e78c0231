"""Commands with a time limit, and commands that wait for their turn once they are ready.

A command that waits finds the number of a descriptor in BANDWATCH_TURN. It writes one byte when it
is ready and reads one when it is its turn; the end of the file means that nobody waits for it any
more. While it waits it sleeps in that read, so others can be timed meanwhile.
"""

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

TURN = "BANDWATCH_TURN"
KILLED = -1
_NOT_STARTED = 127
# How often a process's end is looked for that its descriptor does not show: a child may hold it.
_LOOK_S = 1.0


class Running:
    """A command in a session of its own, its output in a file; at the end nothing of it is left.

    With `waits` it is let go by `let_go`. Its limit in seconds is for its own work, not for the
    time that it waits. Use it as a context, so that it ends whatever happens.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        folder: Path,
        output: int,
        limit_s: float,
        environment: Mapping[str, str] | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self._left_s = limit_s
        self._begun = time.monotonic()
        self._code = KILLED
        self._waits = False
        self._child: subprocess.Popen[bytes] | None = None
        self._ours, theirs = socket.socketpair()
        variables = dict(os.environ if environment is None else environment)
        variables.pop(TURN, None)
        try:
            self._child = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=variables | ({TURN: str(theirs.fileno())} if waits else {}),
                pass_fds=(theirs.fileno(),) if waits else (),
                start_new_session=True,
            )
        except OSError as error:
            os.write(output, f"{command[0]}: {error.strerror or error}\n".encode())
            self._code = _NOT_STARTED
        finally:
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ready(self) -> bool:
        """Return whether it waits for its turn now; False when it ended before, or at its limit."""
        while self._child is not None and not self._waits:
            if self._shows():
                if self._heard():
                    self._left_s, self._waits = self._left(), True
                else:
                    self.wait()
            elif not self._left() or self._child.poll() is not None:
                self.wait()
        return self._waits

    def let_go(self) -> None:
        """Tell it that it is its turn."""
        self._begun, self._waits = time.monotonic(), False
        with suppress(OSError):  # it ended: its exit code tells
            self._ours.send(b"\n")

    def wait(self) -> int:
        """Return its exit code, KILLED after it was ended at its limit."""
        if self._child is not None:
            # Asleep until its descriptor closes, as it does when it ends.
            while self._left() and not self._shows() and self._child.poll() is None:
                pass
            try:
                self._code = abs(self._child.wait(self._left()))
            except subprocess.TimeoutExpired:
                self._code = KILLED
            self.end()
        return self._code

    def end(self) -> None:
        """End it with all its children."""
        if self._child is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None
        self._ours.close()

    def _left(self) -> float:
        return max(0.0, self._begun + self._left_s - time.monotonic())

    def _shows(self) -> bool:
        """Wait a while for a byte or the end of the file."""
        return bool(select.select([self._ours], [], [], min(_LOOK_S, self._left()))[0])

    def _heard(self) -> bool:
        try:
            return bool(self._ours.recv(1))
        except OSError:
            return False
