"""Columns that several tables share: values in base units, shown scaled."""

from collections.abc import Iterable
from datetime import UTC, datetime

from tracker.report.document import ABSENT, Column, Kind, Row, Value
from tracker.units import bandwidth, percent, seconds


def show_time(value: Value) -> str:
    """Show seconds in the unit that fits."""
    return ABSENT if not _is_number(value) else seconds(_number(value))


def show_rate(value: Value) -> str:
    """Show bytes per second as GB/s, without the unit, which the heading has."""
    return ABSENT if not _is_number(value) else bandwidth(_number(value)).removesuffix(" GB/s")


def show_fraction(value: Value) -> str:
    """Show a fraction in percent with one decimal."""
    return ABSENT if not _is_number(value) else f"{_number(value) * 100:.1f} %"


def show_change(value: Value) -> str:
    """Show a relative change in percent, with its sign."""
    return ABSENT if not _is_number(value) else percent(_number(value), signed=True)


def show_some(value: Value) -> str:
    """Show a text that only some rows have, nothing in the others: they lack nothing."""
    return "" if value is None else str(value)


def show_moment(value: Value) -> str:
    """Show an ISO 8601 time, or seconds since 1970, in UTC to the minute."""
    if _is_number(value):
        moment = datetime.fromtimestamp(_number(value), UTC)
    elif isinstance(value, str):
        moment = datetime.fromisoformat(value).astimezone(UTC)
    else:
        return ABSENT
    return moment.strftime("%Y-%m-%d %H:%M")


def show_sha(value: Value) -> str:
    """Show the beginning of a commit id."""
    return str(value)[:12] if value else ABSENT


# Behind a commit, so that no width drops it.
_CHANGED = "+"
_MARKED = "marked_commit"
COMMIT = (Column("commit", None), Column(_MARKED, "commit", Kind.WORD, machine=False))


def commit_values(sha: str | None, *, dirty: bool) -> dict[str, Value]:
    """Return a row's values under COMMIT: the id, and its beginning, marked where `dirty`."""
    shown = show_sha(sha) if sha or dirty else None
    return {"commit": sha, _MARKED: f"{shown}{_CHANGED}" if dirty else shown, "dirty": dirty}


def changed_note(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return what the mark behind a commit means where a row has it."""
    if not any(row.values["dirty"] for row in rows):
        return ()
    means = "measured with uncommitted changes, so the result is not the commit's"
    return (f"{_CHANGED} behind a commit: {means}",)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Value) -> float:
    return float(value)  # type: ignore[arg-type]
