"""An exported store into a store, whatever its form, in one transaction.

An empty store becomes identical to the one that was exported: ids, revision and times included.
Into a store that holds runs, or from an export of some runs only, what is new is added as if
recorded now.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from tracker.errors import RecordError
from tracker.exporters.content import COMMIT, KINDS, VERSION
from tracker.importers import lines, tables
from tracker.importers.document import Document, Line
from tracker.importers.view import View
from tracker.model import Commit, Run
from tracker.record import parse_run
from tracker.record.dump import dump_commit
from tracker.record.strict import shorten
from tracker.record.validate import check_commit, check_time
from tracker.store import RecordOutcome, Store
from tracker.store.commits import learn_commits
from tracker.store.people import Triage, TriageState, Waiver, WaiverAction, check_entry
from tracker.store.prepare import Prepared, epoch, prepare
from tracker.store.rows import chunks, insert_all, next_id
from tracker.store.schema import (
    Base,
    CommitParentRow,
    CommitRow,
    Meta,
    RunRow,
    TriageRow,
    WaiverRow,
)
from tracker.store.store import (
    NothingNewError,
    holds,
    insert_new,
    outcomes_of,
    stop_unless,
    without_secrets,
)
from tracker.store.writer import Stored, write_run

_FORMS: dict[bytes, Callable[[Path], Iterator[Document]]] = {
    lines.BEGINNING: lines.documents,
    tables.CSV_BEGINNING: tables.csv_documents,
    tables.PARQUET_BEGINNING: tables.parquet_documents,
}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STORE_ID = re.compile(r"[0-9a-f]{32}")
_INT64 = 1 << 63


@dataclass(slots=True)
class Restored:
    """What came in, by kind, and whether the store became identical to the exported one."""

    identical: bool
    added: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS.values(), 0))
    held: int = 0


def is_export(path: Path) -> bool:
    """Return whether a file is an exported store, in any of its forms."""
    # Only of a file: to open a pipe would wait for its writer.
    return os.path.isfile(path) and _form_of(path) is not None  # noqa: PTH113 - never raises


def _form_of(path: Path) -> Callable[[Path], Iterator[Document]] | None:
    with suppress(OSError), path.open("rb") as stream:
        begins = stream.read(max(map(len, _FORMS)))
        return next((form for mark, form in _FORMS.items() if begins.startswith(mark)), None)
    return None


def restore(path: Path, store: Store) -> Restored:
    """Bring everything of a file into a store, or nothing.

    Raises RecordError for a file that is damaged, was changed or ends too early, StoreError for a
    run that the store holds with other content.
    """
    _, (done,) = bring_in(store, (), [path])
    return done


def bring_in(
    store: Store, runs: Sequence[Run], exports: Sequence[Path]
) -> tuple[tuple[RecordOutcome, ...], tuple[Restored, ...]]:
    """Bring runs and exported stores in, all or nothing; errors as those of `restore`."""
    if not exports:
        return (store.record_all(runs) if runs else ()), ()
    prepared = [prepare(without_secrets(run)) for run in runs]
    named = (
        str(exports[0]) if len(exports) == 1 and not runs else f"{len(runs) + len(exports)} files"
    )
    fresh: list[bool] = []
    restored: list[Restored] = []
    revision = 0
    try:
        with store.writing(f"import {named}") as (connection, revision):
            fresh = insert_new(connection, prepared, revision, store.name)
            for path in exports:
                alone = len(exports) == 1 and not runs
                restored.append(_restore(path, store, connection, revision, alone=alone))
            added = sum(sum(done.added.values()) for done in restored)
            stop_unless(any(fresh) or added > 0)
    except NothingNewError:
        revision -= 1
    return outcomes_of(prepared, fresh, revision), tuple(restored)


def _restore(
    path: Path, store: Store, connection: Connection, revision: int, *, alone: bool
) -> Restored:
    form = _form_of(path)
    if form is None:
        raise RecordError(f"cannot read {path}: it is no export of a store; nothing was changed")
    try:
        return _Restoring(store, connection, revision, alone=alone).run(form(path), str(path))
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error


class _Restoring:
    """One import: things go in as they come, what they count is compared at the end."""

    def __init__(self, store: Store, connection: Connection, revision: int, *, alone: bool) -> None:
        self._store, self._connection, self._revision = store, connection, revision
        filled = [_count(connection, t) for t in (RunRow, CommitRow, TriageRow, WaiverRow)]
        self._done = Restored(identical=alone and not any(filled))
        self._commits: list[Line] = []
        self._counts = dict.fromkeys(KINDS.values(), 0)

    def run(self, documents: Iterator[Document], name: str) -> Restored:
        """Take everything and return what it brought."""
        first = next(documents, Document(name, {}))
        self._check_header(first)
        take: dict[str, Callable[[Document], None]] = {
            "commit": self._commit,
            "run": self._run,
            "triage": self._triage,
            "waiver": self._waiver,
        }
        for document in documents:
            where, line = document.where, document.line
            if "end" in line:
                return self._end(where, line, first.line, next(documents, None))
            kind = next((key for key in take if key in line), None)
            if kind is None:
                raise RecordError(
                    f"cannot read {where}: found {shorten(dict(line))}; expected one "
                    f"of {', '.join(take)}"
                )
            self._counts[KINDS[kind]] += 1
            self._guarded(take[kind], document)
        raise RecordError(
            f"cannot import {name}: it ends before its last line; nothing was changed; "
            "export it again"
        )

    def _guarded(self, function: Callable[[Document], None], document: Document) -> None:
        try:
            if function != self._commit and self._commits:
                self._write_commits()
            function(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise RecordError(f"cannot read {document.where}: it is malformed ({told})") from error

    def _check_header(self, document: Document) -> None:
        where, header = document.where, document.line
        if header.get("bandwatch") != "store" or header.get("lines") != VERSION:
            raise RecordError(
                f"cannot read {where}: found {shorten(dict(header))}; expected the first line of "
                f"`bandwatch export`, version {VERSION}"
            )
        view = View(header, "", where)
        if not _STORE_ID.fullmatch(view.text("store_id")):
            view.refuse("store_id", "32 hexadecimal digits")
        check_time(view.text("created_at"), f"{where}: created_at")
        _check_revision(view, most=_INT64 - 1)
        if type(header.get("whole", True)) is not bool:
            view.refuse("whole", "true or false")
        # Some runs of a store are not that store: they are added under this store's own name.
        self._done.identical &= bool(header.get("whole", True))

    def _commit(self, document: Document) -> None:
        commit = document.line["commit"]
        if type(commit["known"]) is not bool:
            raise TypeError(f"known is {shorten(commit['known'])}")
        check_commit(dump_commit(_commit_of(commit)), document.where)
        self._commits.append(commit)

    def _write_commits(self) -> None:
        commits, self._commits = self._commits, []
        if not self._done.identical:
            before = _count(self._connection, CommitRow)
            learn_commits(self._connection, [_commit_of(c) for c in commits if c["known"]])
            self._done.added["commits"] += _count(self._connection, CommitRow) - before
            return
        start = next_id(self._connection, CommitRow)
        ids = {commit["sha"]: start + place for place, commit in enumerate(commits)}
        if len(ids) != len(commits):
            raise ValueError("a commit stands in it twice")
        rows = [_commit_row(ids[commit["sha"]], commit) for commit in commits]
        edges = [
            {"commit_id": ids[commit["sha"]], "position": place, "parent_id": ids[parent]}
            for commit in commits
            for place, parent in enumerate(commit["parents"])
        ]
        for table, values in ((CommitRow, rows), (CommitParentRow, edges)):
            for chunk in chunks(values):
                insert_all(self._connection, table, chunk)
        self._done.added["commits"] += len(commits)

    def _run(self, document: Document) -> None:
        where, line = document.where, document.line
        view = View.of(line["stored"], where, "stored")
        thinned = view.data["thinned_at"]
        for name in ("recorded_at", "thinned_at"):
            if view.data[name] is not None:
                check_time(view.text(name), f"{where}: stored.{name}")
        if not _DIGEST.fullmatch(view.text("digest")):
            view.refuse("digest", "64 hexadecimal digits")
        _check_revision(view, most=_INT64 - 1)
        run = parse_run(line["run"], where, exported=True)
        document.check(run)
        prepared = self._verified(where, run, view.text("digest"), thinned=thinned is not None)
        if not self._done.identical and holds(self._connection, prepared, self._store.name):
            self._done.held += 1
            return
        kept = Stored(view.data["revision"], view.text("recorded_at"), thinned)  # type: ignore[arg-type]
        fresh = Stored(self._revision, thinned_at=kept.thinned_at)
        write_run(self._connection, prepared, kept if self._done.identical else fresh)
        self._done.added["runs"] += 1

    @staticmethod
    def _verified(where: str, run: Run, digest: str, *, thinned: bool) -> Prepared:
        prepared = prepare(run, thinned=thinned)
        # The digest of a thinned run is of what it was before: that cannot be computed any more.
        if thinned and any(result.measurements for result in prepared.results):
            raise RecordError(f"cannot import {where}: a thinned run with measurements")
        if not thinned and prepared.digest != digest:
            raise RecordError(
                f"cannot import {where}: the run is not what was exported: its content "
                "has another digest; nothing was changed"
            )
        return replace(prepared, digest=digest)

    def _triage(self, document: Document) -> None:
        values = _exactly(Triage, document.line["triage"])
        entry = Triage(**{**values, "state": TriageState(values["state"])})
        self._append(TriageRow, entry, values, "triage")

    def _waiver(self, document: Document) -> None:
        values = _exactly(Waiver, document.line["waiver"])
        entry = Waiver(**{**values, "action": WaiverAction(values["action"])})
        self._append(WaiverRow, entry, values, "waivers")

    def _append(
        self, table: type[Base], entry: Triage | Waiver, values: dict[str, Any], kind: str
    ) -> None:
        if entry.at is None:
            raise ValueError("at is missing")
        check_entry(self._store, entry)
        columns = table.__table__.c
        same = select(columns.id).where(
            *(columns[key].is_not_distinct_from(value) for key, value in values.items())
        )
        if self._done.identical or self._connection.execute(same).first() is None:
            new = {"id": next_id(self._connection, table), **values}
            self._connection.execute(insert(table), new)
            self._done.added[kind] += 1

    def _end(self, where: str, line: Line, header: Line, more: Document | None) -> Restored:
        if self._commits:
            self._guarded(lambda _: None, Document(where, line))
        if line["end"] != self._counts:
            raise RecordError(
                f"cannot import {where}: it names {shorten(line['end'], 200)} but {self._counts} "
                "came; nothing was changed; export it again"
            )
        if more is not None:
            raise RecordError(f"cannot read {more.where}: something stands after the end")
        if self._done.identical:
            newest = self._connection.execute(select(func.max(RunRow.revision))).scalar()
            if (newest or 0) > header["revision"]:
                raise RecordError(
                    f"cannot import {where}: a run of revision {newest} in a store of revision "
                    f"{header['revision']}; nothing was changed"
                )
            same = {key: header[key] for key in ("store_id", "created_at", "revision")}
            self._connection.execute(update(Meta).values(**same))
        return self._done


def _check_revision(view: View, *, most: int) -> None:
    revision = view.data.get("revision")
    if type(revision) is not int or not 0 <= revision <= most:
        view.refuse("revision", "a whole number of 0 or more")


def _exactly(kind: type, found: object) -> dict[str, Any]:
    """Return the values of an entry that has the fields of `kind` and no other."""
    names = [f.name for f in fields(kind)]
    if not isinstance(found, dict) or set(found) != set(names):
        raise ValueError(f"expected an object with {', '.join(names)}")
    return dict(found)


def _count(connection: Connection, table: type[Base]) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _commit_of(line: Line) -> Commit:
    facts = {key: line[key] for key in COMMIT if key != "known"}
    return Commit(**facts, parents=tuple(line["parents"]))


def _commit_row(number: int, commit: Line) -> dict[str, Any]:
    time = commit["commit_time"]
    facts = {name: commit[name] for name in COMMIT}
    return {"id": number, **facts, "committed": epoch(time) if time else None}
