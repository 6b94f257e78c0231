"""What a store holds, thing by thing, as of one moment: what every whole export writes.

Each kind comes in the order in which the store got it, so that a new store gives the same ids.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.engine import Connection

from tracker.model import Run
from tracker.store import Store
from tracker.store.migrate import HEAD
from tracker.store.reader import read_run
from tracker.store.schema import (
    Base,
    CommitParentRow,
    CommitRow,
    Meta,
    RunRow,
    TriageRow,
    WaiverRow,
)

VERSION = 1
# Kind of a thing: what it is called where things are counted.
KINDS = {"commit": "commits", "run": "runs", "triage": "triage", "waiver": "waivers"}
COMMIT = ("sha", "known", "author", "author_time", "commit_time", "subject")
STORED = ("revision", "recorded_at", "thinned_at", "digest")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing: the first is the `store`, the last the `end` with the counts of the others.

    `value` is plain JSON data; of a run it is what the store says of it besides its content.
    """

    kind: str
    value: Mapping[str, Any]
    run: Run | None = None


def content(store: Store, *conditions: ColumnElement[bool]) -> Iterator[Item]:
    """Yield everything; conditions on RunRow leave out other runs, and the first item says so."""
    counts = dict.fromkeys(KINDS.values(), 0)
    with store.reading("export") as connection:
        for item in _items(connection, conditions):
            if item.kind in KINDS:
                counts[KINDS[item.kind]] += 1
            yield item
    yield Item("end", counts)


def _items(connection: Connection, conditions: tuple[ColumnElement[bool], ...]) -> Iterator[Item]:
    meta = connection.execute(select(Meta.__table__)).one()
    told = {name: getattr(meta, name) for name in ("store_id", "created_at", "revision")}
    first = {"bandwatch": "store", "lines": VERSION, "schema": HEAD, "whole": not conditions}
    yield Item("store", {**first, **told})
    for commit in _commits(connection):
        yield Item("commit", commit)
    runs = select(RunRow.id, *(getattr(RunRow, name) for name in STORED)).where(*conditions)
    for row in connection.execute(runs.order_by(RunRow.id)).all():
        stored = {name: getattr(row, name) for name in STORED}
        yield Item("run", stored, read_run(connection, row.id))
    for kind, table in (("triage", TriageRow), ("waiver", WaiverRow)):
        for entry in _rows(connection, table):
            yield Item(kind, entry)


def _commits(connection: Connection) -> Iterator[dict[str, Any]]:
    parents: dict[int, list[str]] = {}
    edges = (
        select(CommitParentRow.commit_id, CommitRow.sha)
        .join(CommitRow, CommitRow.id == CommitParentRow.parent_id)
        .order_by(CommitParentRow.commit_id, CommitParentRow.position)
    )
    for commit_id, sha in connection.execute(edges):
        parents.setdefault(commit_id, []).append(sha)
    for row in connection.execute(select(CommitRow.__table__).order_by(CommitRow.id)):
        facts = {name: getattr(row, name) for name in COMMIT}
        yield {**facts, "parents": parents.get(row.id, [])}


def _rows(connection: Connection, table: type[Base]) -> Iterator[dict[str, Any]]:
    columns = table.__table__
    for row in connection.execute(select(columns).order_by(columns.c.id)).mappings():
        yield {key: value for key, value in row.items() if key != "id"}
