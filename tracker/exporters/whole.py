"""Files written whole or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import RecordError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give the path of a file that takes the place of `path` when all went well, else vanishes.

    A link stays one: what it points to is replaced. A device or a pipe is written itself.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        if target.is_dir():
            raise RecordError(f"cannot write {path}: it is a folder; name a file")
        if target.exists() and not target.is_file():
            yield target
            return
        yield partial
        partial.replace(target)
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(pieces: Iterable[bytes], path: Path) -> int:
    """Write pieces into a file, whole or not at all, and return its size in bytes."""
    with whole_file(path) as partial, partial.open("wb") as stream:
        stream.writelines(pieces)
    return path.stat().st_size
