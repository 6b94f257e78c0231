"""What every form of an exported store is read into: documents as JSON lines have them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracker.model import Run
from tracker.record import MAX_BYTES

# A run of 100,000 results with samples is larger than a record file may be.
MAX_THING = 8 * MAX_BYTES
Line = Mapping[str, Any]


def nothing_to_check(run: Run) -> None:
    """Accept a run: its form says nothing twice."""
    del run


@dataclass(frozen=True, slots=True)
class Document:
    """One thing: where it stands, what it is, and what its form says twice.

    `check` raises RecordError where a run differs from what its form says of it besides.
    """

    where: str
    line: Line
    check: Callable[[Run], None] = nothing_to_check
