"""One thing that the doctor looked at."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Only `FAIL` means that nothing can be measured."""

    OK = "ok"
    INFO = "info"
    WARN = "warning"
    FAIL = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and the command or step that mends it."""

    area: str
    name: str
    level: Level
    found: str
    fix: str | None = None
