"""A run as a record file, whole or not at all."""

import json
import os
from pathlib import Path

from tracker.errors import RecordError
from tracker.model import Run
from tracker.record.dump import dump_run


def write_run(run: Run, path: str | Path) -> None:
    """Write a run's record; a reader never sees half of it."""
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(dump_run(run), allow_nan=False) + "\n", "utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise RecordError(
            f"cannot write {path}: {error}; expected null for a value that does not exist"
        ) from error
