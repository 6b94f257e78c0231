"""A store as JSON lines: everything that it holds, one thing a line.

    {"bandwatch": "store", "lines": 1, "schema": .., "store_id": .., "revision": .., ...}
    {"commit": {"sha": ..., "known": true, "parents": [...], ...}}
    {"run": {a run document}, "stored": {"revision": .., "recorded_at": .., "digest": .., ...}}
    {"triage": {...}}   {"waiver": {...}}
    {"end": {"commits": 3, "runs": 2, "triage": 0, "waivers": 0}}

Each kind comes in the order in which the store got it, so that a new store gives the same ids.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.engine import Connection

from tracker.record.dump import canonical, dump_run
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
KINDS = ("commits", "runs", "triage", "waivers")
COMMIT = ("sha", "known", "author", "author_time", "commit_time", "subject")
STORED = ("revision", "recorded_at", "thinned_at", "digest")
_BATCH = 1000


def lines(store: Store, *conditions: ColumnElement[bool]) -> Iterator[bytes]:
    """Yield the store's lines, as of one moment; conditions on RunRow leave out other runs."""
    counts = dict.fromkeys(KINDS, 0)
    with store.reading("export") as connection:
        for kind, line in _content(connection, conditions):
            if kind in counts:
                counts[kind] += 1
            yield canonical(line) + b"\n"
    yield canonical({"end": counts}) + b"\n"


def _content(
    connection: Connection, conditions: tuple[ColumnElement[bool], ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    meta = connection.execute(select(Meta.__table__)).one()
    told = {name: getattr(meta, name) for name in ("store_id", "created_at", "revision")}
    yield "store", {"bandwatch": "store", "lines": VERSION, "schema": HEAD, **told}
    for commit in _commits(connection):
        yield "commits", {"commit": commit}
    runs = select(RunRow.id, *(getattr(RunRow, name) for name in STORED)).where(*conditions)
    for row in connection.execute(runs.order_by(RunRow.id)).all():
        stored = {name: getattr(row, name) for name in STORED}
        yield "runs", {"run": dump_run(read_run(connection, row.id)), "stored": stored}
    for entry in _rows(connection, TriageRow):
        yield "triage", {"triage": entry}
    for entry in _rows(connection, WaiverRow):
        yield "waivers", {"waiver": entry}


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


def _rows(connection: Connection, table: type[Base]) -> Iterator[Mapping[str, Any]]:
    columns = table.__table__
    for row in connection.execute(select(columns).order_by(columns.c.id)).mappings():
        yield {key: value for key, value in row.items() if key != "id"}
