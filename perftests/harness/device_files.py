"""Small files that all processes and users of a machine share for a device."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.harness.clock import monotonic

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERYONE = 0o666
_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link that somebody laid in the file's place is not followed: its target would be emptied."""
_MOMENT_SECONDS = 0.5
_POLL_SECONDS = 0.001


def device_file(uuid: str, suffix: str, folder: Path | None = None) -> Path:
    """Return the path of such a file, in the folder for temporary files unless another is given."""
    base = Path(tempfile.gettempdir()) if folder is None else folder
    return base / f"bandwatch-{re.sub(r'[^0-9A-Za-z-]', '_', uuid)}.{suffix}"


def open_for_everyone(path: Path) -> int:
    """Open a file that every user may write, and make it where it is missing; raise OSError.

    With fs.protected_regular another user's file in /tmp cannot be opened with O_CREAT, not even by
    root, unless O_EXCL says that it must be new.
    """
    with suppress(FileNotFoundError):
        return _known(path)
    with suppress(FileExistsError):
        return _opened_to_all(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _ALWAYS, _EVERYONE)
        )
    return _known(path)  # another has made it meanwhile


def _known(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | _ALWAYS)
    except PermissionError:  # what may be read can be locked all the same
        return os.open(path, os.O_RDONLY | _ALWAYS)
    return _opened_to_all(file)


def _opened_to_all(file: int) -> int:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):  # a pipe, say, that somebody laid there
        os.close(file)
        raise OSError(errno.EINVAL, "it is no regular file")
    if stat.S_IMODE(found.st_mode) != _EVERYONE and found.st_uid == os.getuid():
        os.fchmod(file, _EVERYONE)  # whatever the umask was
    return file


def rewrite(file: int, text: str) -> None:
    """Make a text the whole of an open file; raise OSError.

    It is cut only where it was longer: the disk may have to take part in that.
    """
    data = text.encode()
    if data:
        os.pwrite(file, data, 0)
    if os.fstat(file).st_size > len(data):
        os.ftruncate(file, len(data))


@contextmanager
def alone_for_a_moment(path: Path) -> Iterator[int]:
    """Have such a file alone for some reads and writes.

    Raises OSError where it cannot be opened, or where another keeps it for longer than a moment.
    """
    file = open_for_everyone(path)
    try:
        if not locked_within(_MOMENT_SECONDS, file, fcntl.LOCK_EX, poll_s=_POLL_SECONDS):
            raise TimeoutError(f"{path} is kept by another process")
        yield file
    finally:
        os.close(file)


def locked_within(seconds: float, file: int, kind: int, *, poll_s: float) -> bool:
    """Take the system's lock of an open file; return whether it could be had in time."""
    deadline = monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= deadline:
                return False
            time.sleep(poll_s)
        else:
            return True
