"""JSON lines of `bandwatch export` into a store, in one transaction.

An empty store becomes identical to the one that was exported: ids, revision and times included.
Into a store that holds runs what is new is added, as if recorded now.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from tracker.errors import RecordError
from tracker.exporters.lines import COMMIT, KINDS, VERSION
from tracker.importers.source import commit_of
from tracker.importers.view import View
from tracker.model import Commit
from tracker.record import MAX_BYTES, parse_json, parse_run
from tracker.record.strict import shorten
from tracker.store import Store
from tracker.store.commits import learn_commits
from tracker.store.prepare import epoch, prepare
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
from tracker.store.store import holds
from tracker.store.writer import Stored, write_run

# A run of 100,000 results with samples is larger than a record file may be.
MAX_LINE = 8 * MAX_BYTES
BEGINNING = b'{"bandwatch":"store"'
Line = Mapping[str, Any]


@dataclass(slots=True)
class Restored:
    """What came in, by kind, and whether the store became identical to the exported one."""

    identical: bool
    added: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    held: int = 0


def is_lines(path: Path) -> bool:
    """Return whether a file is such an export."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False


def restore(path: Path, store: Store) -> Restored:
    """Bring every line of a file into a store, or nothing.

    Raises RecordError for a line that is damaged or changed and for a file that ends too early,
    StoreError for a run that the store holds with other content.
    """
    try:
        with path.open("rb") as stream, store.writing(f"import {path}") as (connection, revision):
            found = _documents(iter(lambda: stream.readline(MAX_LINE + 1), b""), str(path))
            done = _Restoring(store, connection, revision).run(found, str(path))
            _stop_unless_new(done)
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except _NothingNewError as same:
        return same.done
    return done


def _documents(stream: Iterator[bytes], name: str) -> Iterator[tuple[str, Line]]:
    for number, data in enumerate(stream, start=1):
        where = f"{name} line {number}"
        if len(data) > MAX_LINE:
            raise RecordError(f"cannot read {where}: longer than {MAX_LINE:,} bytes")
        yield where, View.of(parse_json(data, where), where).data


class _Restoring:
    """One import: lines go in as they come, what they count is compared at the end."""

    def __init__(self, store: Store, connection: Connection, revision: int) -> None:
        self._store, self._connection, self._revision = store, connection, revision
        filled = [_count(connection, t) for t in (RunRow, CommitRow, TriageRow, WaiverRow)]
        self._done = Restored(identical=not any(filled))
        self._commits: list[Line] = []
        self._counts = dict.fromkeys(KINDS, 0)

    def run(self, lines: Iterator[tuple[str, Line]], name: str) -> Restored:
        """Take all lines and return what they brought."""
        where, header = next(lines, (name, {}))
        self._check_header(where, header)
        take: dict[str, tuple[str, Callable[[str, Line], None]]] = {
            "commit": ("commits", self._commit),
            "run": ("runs", self._run),
            "triage": ("triage", self._log(TriageRow, "triage")),
            "waiver": ("waivers", self._log(WaiverRow, "waiver")),
        }
        for where, line in lines:
            if "end" in line:
                return self._end(where, line, header)
            kind = next((key for key in take if key in line), None)
            if kind is None:
                raise RecordError(
                    f"cannot read {where}: found {shorten(dict(line))}; expected one "
                    f"of {', '.join(take)}"
                )
            counted, function = take[kind]
            self._counts[counted] += 1
            try:
                function(where, line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                told = f"{type(error).__name__}: {error}"[:200]
                raise RecordError(f"cannot read {where}: it is malformed ({told})") from error
        raise RecordError(
            f"cannot import {name}: it ends before its last line; nothing was changed; "
            "export it again"
        )

    def _check_header(self, where: str, header: Line) -> None:
        if header.get("bandwatch") != "store" or header.get("lines") != VERSION:
            raise RecordError(
                f"cannot read {where}: found {shorten(dict(header))}; expected the first line of "
                f"`bandwatch export --format jsonl`, version {VERSION}"
            )

    def _commit(self, where: str, line: Line) -> None:
        commit = line["commit"]
        if not all(commit_of(sha) for sha in (commit["sha"], *commit["parents"])):
            raise RecordError(
                f"cannot read {where}: {shorten(commit['sha'])} or a parent is no commit"
            )
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

    def _run(self, where: str, line: Line) -> None:
        if self._commits:
            self._write_commits()
        stored = line["stored"]
        thinned = stored["thinned_at"]
        prepared = prepare(parse_run(line["run"], where), thinned=thinned is not None)
        if thinned is None and prepared.digest != stored["digest"]:
            raise RecordError(
                f"cannot import {where}: the run is not what was exported: its content "
                "has another digest; nothing was changed"
            )
        prepared = replace(prepared, digest=stored["digest"])
        if not self._done.identical and holds(self._connection, prepared, self._store.name):
            self._done.held += 1
            return
        kept = Stored(stored["revision"], stored["recorded_at"], thinned)
        fresh = Stored(self._revision, thinned_at=thinned)
        write_run(self._connection, prepared, kept if self._done.identical else fresh)
        self._done.added["runs"] += 1

    def _log(self, table: type[Base], kind: str) -> Callable[[str, Line], None]:
        def take(_: str, line: Line) -> None:
            values, columns = dict(line[kind]), table.__table__.c
            same = select(columns.id).where(
                *(columns[key].is_not_distinct_from(value) for key, value in values.items())
            )
            if self._done.identical or self._connection.execute(same).first() is None:
                new = {"id": next_id(self._connection, table), **values}
                self._connection.execute(insert(table), new)
                self._done.added["triage" if kind == "triage" else "waivers"] += 1

        return take

    def _end(self, where: str, line: Line, header: Line) -> Restored:
        if self._commits:
            self._write_commits()
        if line["end"] != self._counts:
            raise RecordError(
                f"cannot import {where}: it names {line['end']} but {self._counts} came; "
                "nothing was changed; export it again"
            )
        if self._done.identical:
            same = {key: header[key] for key in ("store_id", "created_at", "revision")}
            self._connection.execute(update(Meta).values(**same))
        return self._done


class _NothingNewError(Exception):
    """Everything is there already: the transaction ends without a change."""

    def __init__(self, done: Restored) -> None:
        super().__init__()
        self.done = done


def _stop_unless_new(done: Restored) -> None:
    if not any(done.added.values()):
        raise _NothingNewError(done)


def _count(connection: Connection, table: type[Base]) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _commit_of(line: Line) -> Commit:
    facts = {key: line[key] for key in COMMIT if key != "known"}
    return Commit(**facts, parents=tuple(line["parents"]))


def _commit_row(number: int, commit: Line) -> dict[str, Any]:
    time = commit["commit_time"]
    facts = {name: commit[name] for name in COMMIT}
    return {"id": number, **facts, "committed": epoch(time) if time else None}
