"""A store as JSON lines: everything that it holds, one thing a line.

{"bandwatch": "store", "lines": 1, "schema": .., "whole": true, "store_id": .., ...}
{"commit": {"sha": ..., "known": true, "parents": [...], ...}}
{"run": {a run document}, "stored": {"revision": .., "recorded_at": .., "digest": .., ...}}
{"triage": {...}}   {"waiver": {...}}
{"end": {"commits": 3, "runs": 2, "triage": 0, "waivers": 0}}
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement

from tracker.exporters.content import Item, content
from tracker.record.dump import canonical, dump_run
from tracker.store import Store


def lines(store: Store, *conditions: ColumnElement[bool]) -> Iterator[bytes]:
    """Yield the store's lines, as of one moment; conditions on RunRow leave out other runs."""
    for item in content(store, *conditions):
        yield canonical(_line(item)) + b"\n"


def _line(item: Item) -> Mapping[str, Any]:
    if item.run is not None:
        return {"run": dump_run(item.run), "stored": item.value}
    return item.value if item.kind == "store" else {item.kind: item.value}
