"""Two runs side by side: medians and how they differ, nothing judged."""

from heapq import nlargest
from math import log1p

from tracker.queries.results import Medians
from tracker.report.columns import show_change, show_time
from tracker.report.document import Column, Document, Kind, Row, Table, Value
from tracker.report.verdicts import Heading

COLUMNS = (
    Column("case", "case", Kind.CODE),
    Column("base_median_s", "base", Kind.NUMBER, show_time),
    Column("median_s", "head", Kind.NUMBER, show_time),
    Column("time_change", "change of time", Kind.NUMBER, show_change),
    Column("fingerprint", None),
)


def medians_document(heading: Heading, found: Medians, limit: int | None) -> Document:
    """Return the report of what both runs measured; its exit code is 0 whatever changed.

    People see the `limit` cases that changed most, in the order of head's record.
    """
    columns = (found.labels, found.case_keys, found.base_s.tolist(), found.head_s.tolist())
    values = [_values(*each) for each in zip(*columns, strict=True)]
    seen = _changed_most(values, limit)
    rows = tuple(Row(each, hidden=index not in seen) for index, each in enumerate(values))
    hidden = len(rows) - len(seen)
    note = f"{hidden} that changed less are hidden; --all shows them" if hidden else None
    return Document(
        kind="medians",
        title=heading.title,
        summary=f"{len(rows)} case{'' if len(rows) == 1 else 's'} in both runs; nothing was judged",
        facts=heading.facts,
        fact_lines=heading.fact_lines,
        tables=(Table("medians", COLUMNS, rows, hidden_note=note),),
        notes=heading.notes,
    )


def _values(label: str, key: str, base_s: float, head_s: float) -> dict[str, Value]:
    # What was not timed is NaN, which differs from itself.
    base, head = (None if s != s else s for s in (base_s, head_s))  # noqa: PLR0124
    return {
        "case": label,
        "base_median_s": base,
        "median_s": head,
        "time_change": head / base - 1 if base and head else None,
        "fingerprint": key,
    }


def _changed_most(values: list[dict[str, Value]], limit: int | None) -> frozenset[int]:
    """Return the places of the `limit` largest changes, by how many times apart the times are."""
    if limit is None or len(values) <= limit:
        return frozenset(range(len(values)))

    def apart(place: int) -> float:
        change = values[place]["time_change"]
        return abs(log1p(change)) if isinstance(change, float) else -1.0

    return frozenset(nlargest(limit, range(len(values)), key=apart))
