"""Two runs side by side: what was measured and how the medians differ, nothing judged."""

from heapq import nlargest
from math import log1p
from typing import TYPE_CHECKING

from tracker.queries.results import SIDE, SideBySide
from tracker.report.columns import show_change, show_time
from tracker.report.document import Column, Document, Kind, Row, Table, Value
from tracker.report.hidden import hidden
from tracker.report.verdicts import Heading
from tracker.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = {
    "base_median_s": "base",
    "median_s": "head",
    "base_min_s": "base min",
    "min_s": "head min",
    "base_stddev_s": "base sd",
    "stddev_s": "head sd",
}
COLUMNS = (
    Column("case", "case", Kind.CODE),
    *(Column(key, _SHOWN[key], Kind.NUMBER, show_time) for key in ("base_median_s", "median_s")),
    Column("time_change", "change of time", Kind.NUMBER, show_change),
    *(
        Column(key, heading, Kind.NUMBER, show_time, drop=1)
        for key, heading in _SHOWN.items()
        if "median" not in key
    ),
    Column("fingerprint", None),
    *(
        Column(f"{side}{name}", None)
        for name in SIDE
        for side in ("base_", "")
        if f"{side}{name}" not in _SHOWN
    ),
)


def side_by_side_document(heading: Heading, found: SideBySide, limit: int | None) -> Document:
    """Return the report of what both runs measured; its exit code is 0 whatever changed.

    People see the `limit` cases that changed most, in the order of head's record.
    """
    values = _values(found)
    seen = _changed_most(values, limit)
    rows = tuple(Row(each, hidden=index not in seen) for index, each in enumerate(values))
    rest = len(rows) - len(seen)
    note = hidden(rest, f"{rest} that changed less", "--all")
    return Document(
        kind="side-by-side",
        title=heading.title,
        summary=f"{counted(len(rows), 'case')} in both runs; nothing was judged",
        facts=heading.facts,
        fact_lines=heading.fact_lines,
        tables=(Table("cases", COLUMNS, rows, hidden_note=note),),
        notes=heading.notes,
    )


def _values(found: SideBySide) -> list[dict[str, Value]]:
    """Return a row's values for each case; what was not timed is None."""
    medians = zip(found.base["median_s"], found.head["median_s"], strict=True)
    columns: dict[str, Sequence[Value]] = {
        "case": found.labels,
        "time_change": [head / base - 1 if base and head else None for base, head in medians],
        "fingerprint": found.case_keys,
        **{f"base_{name}": numbers for name, numbers in found.base.items()},
        **found.head,
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _changed_most(values: list[dict[str, Value]], limit: int | None) -> frozenset[int]:
    """Return the places of the `limit` largest changes, by how many times apart the times are."""
    if limit is None or len(values) <= limit:
        return frozenset(range(len(values)))

    def apart(place: int) -> float:
        change = values[place]["time_change"]
        return abs(log1p(change)) if isinstance(change, float) else -1.0

    return frozenset(nlargest(limit, range(len(values)), key=apart))
