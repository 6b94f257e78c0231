"""One timing at a time on each device: a lock by device UUID, held only while measuring.

Correctness work takes the lock shared, timing takes it alone. A gate in front keeps a stream of
shared holders from starving the one who waits to time. The system drops a lock when its process
dies, so nothing is left to clean up.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.harness.errors import UnfitError

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_SECONDS = 0.01
_EVERYONE = 0o666


class DeviceLock:
    """The lock of one device, for all processes and users of this machine."""

    def __init__(self, uuid: str, *, timeout_s: float, folder: Path | None = None) -> None:
        self._uuid = uuid
        self._timeout_s = timeout_s
        base = Path(tempfile.gettempdir()) if folder is None else folder
        name = "bandwatch-" + re.sub(r"[^0-9A-Za-z-]", "_", uuid)
        self._path = base / f"{name}.lock"
        self._gate = base / f"{name}.gate"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device alone; raise UnfitError that names the holder after the time limit."""
        with self._held(self._gate, fcntl.LOCK_EX), self._held(self._path, fcntl.LOCK_EX) as file:
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(_holder()).encode(), 0)
            try:
                yield
            finally:
                os.ftruncate(file, 0)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device together with others who do not time."""
        with self._held(self._gate, fcntl.LOCK_SH):
            shared = self._held(self._path, fcntl.LOCK_SH)
            shared.__enter__()
        try:
            yield
        finally:
            shared.__exit__(None, None, None)

    @contextmanager
    def _held(self, path: Path, kind: int) -> Iterator[int]:
        file = _open(path)
        try:
            self._wait(file, kind)
            yield file
        finally:
            os.close(file)

    def _wait(self, file: int, kind: int) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise UnfitError(self._refusal()) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _refusal(self) -> str:
        return (
            f"cannot measure on {self._uuid}: {self._named_holder()} has held it for longer than "
            f"{self._timeout_s:g} s; wait for that process or raise --bandwatch-lock-timeout"
        )

    def _named_holder(self) -> str:
        try:
            holder = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return "another process (correctness work shares the lock without a name)"
        return (
            f"process {holder.get('pid')} of user {holder.get('user')} since "
            f"{holder.get('since')} ({holder.get('command')})"
        )


def _open(path: Path) -> int:
    """Open the lock file for everyone, whatever the umask of who made it first."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _EVERYONE)
    if os.fstat(file).st_uid == os.getuid():
        os.fchmod(file, _EVERYONE)
    return file


def _holder() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "user": os.environ.get("USER") or str(os.getuid()),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv)[:200],
    }
