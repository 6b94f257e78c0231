"""A file that at most one process holds; the system lets go of it when its holder dies."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import UnfitError

_POLL_S = 0.2
_EVERYONE = 0o666


@contextmanager
def held(
    path: Path,
    timeout_s: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Hold the file alone, waiting at most `timeout_s`.

    Raises UnfitError (exit 4), with the holder's process where it left its number, when somebody
    else holds it for longer, or when the file cannot be opened.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _EVERYONE)
    except PermissionError:
        # Another user's file in a folder like /tmp: it may be opened, not created.
        file = _existing(path)
    except OSError as error:
        raise UnfitError(f"cannot open the lock {path}: {error.strerror or error}") from None
    try:
        deadline = clock() + timeout_s
        while not _taken(file):
            if clock() >= deadline:
                raise UnfitError(
                    f"cannot take the lock {path}: {_holder(file)} has held it for "
                    f"{timeout_s:g} s; wait for it, or end it"
                )
            sleep(_POLL_S)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def _existing(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise UnfitError(f"cannot open the lock {path}: {error.strerror or error}") from None


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: int) -> str:
    text = os.pread(file, 20, 0).decode("ascii", "replace").strip()
    return f"process {text}" if text.isdigit() else "another process"
