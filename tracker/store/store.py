"""A store opened: reading in one snapshot, writing in one transaction, each error in one line."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import local
from typing import Any, Self

from sqlalchemy import URL, Engine, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from tracker.errors import StoreError
from tracker.model import Commit, Run
from tracker.record.dump import dump_commit
from tracker.record.strict import shorten
from tracker.record.validate import check_commit
from tracker.store import migrate
from tracker.store.address import file_of, parse_address, redact, shown
from tracker.store.commits import learn_commits
from tracker.store.engine import WRITING, make_engine
from tracker.store.prepare import Prepared, prepare
from tracker.store.schema import Meta, RunRow
from tracker.store.trouble import is_lost, telling
from tracker.store.writer import Stored, write_run

# A server that restarts is back within seconds; recording twice changes nothing, so trying is safe.
_RETRY_AFTER_S = (0.2, 0.5, 1.0, 2.0, 4.0)


class Outcome(StrEnum):
    """What recording a run did."""

    INSERTED = "inserted"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """What became of a run: inserted, or unchanged because the store holds the same one already."""

    outcome: Outcome
    run_id: str
    results: int
    revision: int

    @property
    def inserted(self) -> bool:
        """Whether the store was changed."""
        return self.outcome is Outcome.INSERTED


class Store:
    """A store of runs. Use `Store.open`; a context manager that closes it."""

    def __init__(self, url: URL, engine: Engine, *, read_only: bool) -> None:
        self.url = url
        self.engine = engine
        self.read_only = read_only
        self._held = local()
        # What queries keep between calls; each entry says for which revision it holds.
        self.cache: dict[str, tuple[int, Any]] = {}

    @classmethod
    def open(cls, address: str, *, read_only: bool = False) -> Self:
        """Return the store at an address: `sqlite:///FILE`, a path, or `postgresql://...`.

        One that does not exist yet is created, unless opened read-only. Raises StoreError for one
        that cannot be opened, is damaged, or has an older or newer schema than this version.
        """
        url = parse_address(address)
        with telling("open the store", url):
            prepare_file(url, read_only=read_only)
            store = cls(url, make_engine(url, read_only=read_only), read_only=read_only)
            try:
                store._check_version()
            except BaseException:
                store.close()
                raise
        return store

    def _check_version(self) -> None:
        try:
            with self.engine.connect() as connection:
                version = migrate.version_of(connection)
            if version is not None:
                migrate.refuse_unless_current(version)
            elif not self.read_only:
                migrate.upgrade(self.engine)
        except StoreError as error:
            raise StoreError(f"cannot open the store {self.name}: {error}") from None
        if version is None and self.read_only:
            raise StoreError(
                f"cannot open the store {self.name}: it is empty; record a run first, "
                "or open it for writing"
            )

    @property
    def name(self) -> str:
        """The address as it may be shown, without secrets."""
        return shown(self.url)

    @property
    def path(self) -> Path | None:
        """The file of an SQLite store, None for a server's."""
        return file_of(self.url)

    def close(self) -> None:
        """Let go of every connection."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def reading(self, action: str = "read") -> Iterator[Connection]:
        """Give a connection whose reads all see the store at one moment."""
        held: Connection | None = getattr(self._held, "connection", None)
        if held is not None:
            with telling(action, self.url):
                yield held
            return
        with telling(action, self.url), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def one_moment(self, action: str = "read") -> Iterator[None]:
        """Let every reading of this thread inside see the store as at the first one.

        For a few seconds of work: what others write meanwhile is not seen.
        """
        before = getattr(self._held, "connection", None)
        with self.reading(action) as connection:
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = before

    @contextmanager
    def writing(self, action: str = "write") -> Iterator[tuple[Connection, int]]:
        """Give a connection with the write lock, and the revision that the transaction makes.

        Leaving it commits; an exception leaves the store as it was, its revision too.
        """
        if self.read_only:
            raise StoreError(f"cannot {action} in {self.name}: it was opened for reading only")
        with telling(action, self.url), self._transaction() as (connection, revision):
            yield connection, revision

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Connection, int]]:
        with (
            self.engine.connect().execution_options(**{WRITING: True}) as connection,
            connection.begin(),
        ):
            # First of all, since on PostgreSQL this row is the write lock: writers take turns, and
            # revisions follow the order of commits.
            bumped = update(Meta).values(revision=Meta.revision + 1).returning(Meta.revision)
            revision = connection.execute(bumped).scalar_one()
            try:
                migrate.refuse_upgraded(connection)
            except StoreError as error:
                raise StoreError(f"cannot write to {self.name}: {error}") from None
            yield connection, revision

    def revision(self) -> int:
        """Return the counter that every write bumps; equal revisions mean equal content."""
        with self.reading("read the revision") as connection:
            return connection.execute(select(Meta.revision)).scalar_one()

    def record(self, run: Run) -> RecordOutcome:
        """Add a run in one transaction. The same run again changes nothing.

        Raises StoreError when the store holds a run of this id with other content, and when it
        cannot be written; nothing is changed then.
        """
        return self.record_all([run])[0]

    def record_all(self, runs: Sequence[Run]) -> tuple[RecordOutcome, ...]:
        """Add runs in one transaction, all or none; errors as those of `record`."""
        several = [prepare(without_secrets(run)) for run in runs]
        action = f"record run {runs[0].run_id}" if len(runs) == 1 else f"record {len(runs)} runs"
        if self.read_only:
            raise StoreError(f"cannot {action} in {self.name}: it was opened for reading only")
        with telling(action, self.url):
            return self._record_patiently(several)

    def _record_patiently(self, several: Sequence[Prepared]) -> tuple[RecordOutcome, ...]:
        for pause in _RETRY_AFTER_S:
            try:
                return self._record(several)
            except DBAPIError as error:
                if not is_lost(error):
                    raise
                time.sleep(pause)
        return self._record(several)

    def _record(self, several: Sequence[Prepared]) -> tuple[RecordOutcome, ...]:
        fresh: list[bool] = []
        at = 0
        try:
            with self._transaction() as (connection, at):
                fresh = insert_new(connection, several, at, self.name)
                stop_unless(any(fresh))
        except NothingNewError:
            at -= 1
        return outcomes_of(several, fresh, at)

    def learn_commits(self, commits: Sequence[Commit]) -> None:
        """Add commits to the graph, so that series have their order; what is known stays."""
        for commit in commits:
            check_commit(dump_commit(commit), f"commit {shorten(commit.sha)}")
        if commits:
            with self.writing("add commits") as (connection, _):
                learn_commits(connection, commits)


class NothingNewError(Exception):
    """The store holds all of it: the transaction ends without a change, its revision too."""


def stop_unless(anything: bool) -> None:
    """Leave a transaction that would change nothing."""
    if not anything:
        raise NothingNewError


def insert_new(
    connection: Connection, several: Sequence[Prepared], revision: int, name: str
) -> list[bool]:
    """Insert the runs that a store lacks, and return which those were; errors as those of `holds`.

    `name` is what an error calls the store.
    """
    fresh: list[bool] = []
    for prepared in several:
        fresh.append(not holds(connection, prepared, name))
        if fresh[-1]:
            write_run(connection, prepared, Stored(revision))
    return fresh


def without_secrets(run: Run) -> Run:
    """Return a run in whose command, CI facts and notes no password stands, whoever wrote them."""
    return replace(
        run,
        command=None if run.command is None else _redacted(run.command),
        ci={key: _redacted(value) for key, value in run.ci.items()},
        notes=tuple(map(_redacted, run.notes)),
    )


def _redacted(text: str) -> str:
    # Never longer than it was: what a record could hold is what its columns can.
    return redact(text)[: len(text)]


def outcomes_of(
    several: Sequence[Prepared], fresh: Sequence[bool], revision: int
) -> tuple[RecordOutcome, ...]:
    """Return what became of runs that `insert_new` was given."""
    return tuple(
        RecordOutcome(
            Outcome.INSERTED if new else Outcome.UNCHANGED,
            prepared.run.run_id,
            len(prepared.results),
            revision,
        )
        for prepared, new in zip(several, fresh, strict=True)
    )


def holds(connection: Connection, prepared: Prepared, name: str) -> bool:
    """Return whether a store has this run already; StoreError for one with other content."""
    run_id = prepared.run.run_id
    held = connection.execute(
        select(RunRow.digest, RunRow.recorded_at).where(RunRow.run_id == run_id)
    ).first()
    if held is None:
        return False
    if held.digest == prepared.digest:
        return True
    raise StoreError(
        f"cannot record run {run_id} in {name}: the store holds a run of this id with "
        f"other content, recorded at {held.recorded_at}; nothing was changed; merge the "
        "shards of one run before recording, or give this run an id of its own"
    )


def prepare_file(url: URL, *, read_only: bool) -> None:
    """Make sure that an SQLite store's file exists, and make it unless reading only."""
    path = file_of(url)
    if path is None or path.is_file():
        return
    if path.exists():
        raise StoreError(f"cannot open the store {path}: it is no file; expected an SQLite file")
    if read_only:
        raise StoreError(
            f"cannot open the store {path}: there is no such file; `pytest --benchmark` makes it, "
            "or `bandwatch demo` fills it with recorded runs"
        )
    try:
        _make_folder(path.parent)
        path.touch()
    except OSError as error:
        raise StoreError(f"cannot make the store {path}: {error.strerror or error}") from error


def _make_folder(folder: Path) -> None:
    if folder.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == ".bandwatch":
        # Nobody wants a database in their next commit.
        (folder / ".gitignore").write_text("*\n", "utf-8")
