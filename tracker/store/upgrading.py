"""A store's state for its keeper, and the way to this version's schema with a backup first."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.engine import Connection

from tracker.errors import StoreError
from tracker.store import migrate
from tracker.store.address import parse_address
from tracker.store.copying import backup, tables
from tracker.store.engine import make_engine
from tracker.store.schema import Meta, RunRow
from tracker.store.store import Store, prepare_file
from tracker.store.trouble import telling


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store is; sizes in bytes, times ISO 8601.

    `version` is its schema's, `known` this code's; what only a known schema can tell is else None.
    """

    name: str
    engine: str
    version: str
    known: str
    size_bytes: int
    store_id: str | None = None
    created_at: str | None = None
    revision: int | None = None
    rows: dict[str, int] | None = None
    oldest_run: str | None = None
    newest_run: str | None = None
    thinned_runs: int | None = None


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What an upgrade did; the backup is None for a server's store and where there was no need."""

    before: str | None
    after: str
    backup: Path | None


def store_info(address: str) -> StoreInfo:
    """Return the state of a store of any schema version. Raises StoreError where there is none."""
    with (
        _unchecked(address, read_only=True) as store,
        store.reading("read its state") as connection,
    ):
        version = _version(connection, store)
        if version is None:
            raise StoreError(f"cannot read {store.name}: it is empty; record a run first")
        engine, size = _engine_and_size(connection, store)
        if version != migrate.HEAD:
            return StoreInfo(store.name, engine, version, migrate.HEAD, size)
        meta = connection.execute(select(Meta.__table__)).one()
        thinned = connection.execute(select(func.count(RunRow.thinned_at))).scalar_one()
        ends = [
            connection.execute(select(RunRow.started_at).order_by(order).limit(1)).scalar()
            for order in (RunRow.started, RunRow.started.desc())
        ]
        return StoreInfo(
            store.name,
            engine,
            version,
            migrate.HEAD,
            size,
            store_id=meta.store_id,
            created_at=meta.created_at,
            revision=meta.revision,
            rows={
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in tables()
            },
            oldest_run=ends[0],
            newest_run=ends[1],
            thinned_runs=thinned,
        )


def _version(connection: Connection, store: Store) -> str | None:
    try:
        return migrate.version_of(connection)
    except StoreError as error:
        raise StoreError(f"cannot open the store {store.name}: {error}") from None


def _engine_and_size(connection: Connection, store: Store) -> tuple[str, int]:
    if store.path is not None:
        version = connection.execute(text("SELECT sqlite_version()")).scalar_one()
        beside = store.path.with_name(store.path.name + "-wal")
        size = store.path.stat().st_size + (beside.stat().st_size if beside.exists() else 0)
        return f"SQLite {version}", size
    version = connection.execute(text("SHOW server_version")).scalar_one()
    names = ", ".join(f"'{table.name}'" for table in tables())
    size = connection.execute(
        text(f"SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(ARRAY[{names}]) name")  # noqa: S608 - our own names
    ).scalar_one()
    return f"PostgreSQL {version}", int(size)


def upgrade_store(address: str) -> Upgraded:
    """Bring a store to this version's schema; an SQLite file is backed up beside itself first.

    Raises StoreError for a newer store, and when a step fails: everything is then as it was.
    """
    url = parse_address(address)
    with telling("upgrade the store", url):
        prepare_file(url, read_only=True)
    with _unchecked(address, read_only=False) as store:
        with store.reading("read its version") as connection:
            before = _version(connection, store)
        if before == migrate.HEAD:
            return Upgraded(before, migrate.HEAD, None)
        saved = None
        if before is not None and before in migrate.VERSIONS and store.path is not None:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
            saved = store.path.with_name(f"{store.path.name}.{before}-{stamp}.backup")
            backup(store, saved)
        with telling("upgrade the store", store.url):
            try:
                migrate.upgrade(store.engine)
            except StoreError as error:
                raise StoreError(f"cannot upgrade {store.name}: {error}") from None
        return Upgraded(before, migrate.HEAD, saved)


def _unchecked(address: str, *, read_only: bool) -> Store:
    url = parse_address(address)
    with telling("open the store", url):
        prepare_file(url, read_only=True)
        return Store(url, make_engine(url, read_only=read_only), read_only=read_only)
