"""Who holds a device at the moment, by the lock files that the measuring harness keeps."""

import fcntl
import json
import tempfile
from pathlib import Path

from tracker.doctor.finding import Finding, Level

AREA = "locks"
_PATTERN = "bandwatch-*.lock"


def check_locks(folder: Path | None = None) -> tuple[Finding, ...]:
    """Return one finding for each device that somebody measures on, or one that nobody does."""
    base = Path(tempfile.gettempdir()) if folder is None else folder
    held = [finding for path in sorted(base.glob(_PATTERN)) if (finding := _check(path))]
    return tuple(held) or (Finding(AREA, "devices", Level.OK, "nobody is measuring"),)


def _check(path: Path) -> Finding | None:
    name = path.stem.removeprefix("bandwatch-")
    try:
        if not path.is_file():
            found = f"{path} is no regular file"
            return Finding(AREA, name, Level.WARN, found, f"remove {path}")
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found = f"held by {_holder(path)}"
                return Finding(AREA, name, Level.WARN, found, "wait until that process is done")
    except OSError as error:
        found = f"{path} cannot be opened: {error.strerror or error}"
        return Finding(AREA, name, Level.WARN, found, f"make {path} readable for everyone")
    return None


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "another process"
    if not isinstance(holder, dict):
        return "another process"
    return f"process {holder.get('pid')} of {holder.get('user')} since {holder.get('since')}"
