"""Compiled code on disk, keyed by content; processes may build the same thing at once."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

DEVICE_FOLDER = Path(__file__).resolve().parent / "device"
_LOCKS = "locks"


class Made(NamedTuple):
    """A file of the cache. `build_s` is how long building took, None when it was there."""

    path: Path
    build_s: float | None


def folder() -> Path:
    """Return the cache's folder: $BANDWATCH_CACHE, else `bandwatch` under the user's cache."""
    named = os.environ.get("BANDWATCH_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    first = Path(named) if named else base / "bandwatch"
    for candidate in (first, Path(tempfile.gettempdir()) / "bandwatch"):
        try:
            candidate.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(candidate, os.W_OK):
            return candidate
    raise OSError(
        f"cannot keep compiled kernels: neither {first} nor {tempfile.gettempdir()} is "
        "writable; set BANDWATCH_CACHE to a folder that is"
    )


def key(parts: Iterable[str | bytes]) -> str:
    """Return a digest of `parts` and of every shared device header, whose text is in any build."""
    digest = hashlib.sha256()
    for part in (*parts, *(path.read_bytes() for path in sorted(DEVICE_FOLDER.glob("*.*h")))):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def texts(source: Path) -> tuple[bytes, ...]:
    """Return the text of a source and of every header beside it, which it may include."""
    return (source.read_bytes(), *(p.read_bytes() for p in sorted(source.parent.glob("*.*h"))))


def produce(name: str, build: Callable[[Path], None]) -> Made:
    """Return the cached file `name`; when absent, `build` writes it to the path that it is given.

    The file appears under its name in one step, so that one who is killed while building never
    shows another a part of it. Who finds it being built, by a thread or another process, waits.
    """
    build_s = None
    target = folder() / name
    if not target.exists():
        with _alone(target):
            if not target.exists():
                start = perf_counter()
                _build(target, build)
                build_s = perf_counter() - start
    return Made(target, build_s)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock of a file; where the file system has no locks, two may build the same."""
    path = target.parent / _LOCKS / target.name
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as handle:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(target: Path, build: Callable[[Path], None]) -> None:
    descriptor, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    try:
        build(Path(partial))
        Path(partial).replace(target)
    finally:
        Path(partial).unlink(missing_ok=True)
