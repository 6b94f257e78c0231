"""Files written whole or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import RecordError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give the path of a file that takes the place of `path` when all went well, else vanishes."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(pieces: Iterable[bytes], path: Path) -> int:
    """Write pieces into a file, whole or not at all, and return its size in bytes."""
    with whole_file(path) as partial, partial.open("wb") as stream:
        stream.writelines(pieces)
    return path.stat().st_size
