"""Compiled code on disk, keyed by content; processes may build the same thing at once."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

DEVICE_FOLDER = Path(__file__).resolve().parent / "device"


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


def produce(name: str, build: Callable[[Path], None]) -> Path:
    """Return the cached file `name`; when absent, `build` writes it to the path that it is given.

    The file appears under its name in one step, so a process that builds the same file at the same
    time, or is killed while building, never shows another a part of it.
    """
    target = folder() / name
    if target.exists():
        return target
    descriptor, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{name}.")
    os.close(descriptor)
    try:
        build(Path(partial))
        Path(partial).replace(target)
    finally:
        Path(partial).unlink(missing_ok=True)
    return target
