"""The schema's version: what a store has, what this code knows, and the way up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.engine import Connection

from tracker.errors import StoreError
from tracker.store.engine import WRITING
from tracker.store.schema import Base, Meta

VERSION_TABLE = "bandwatch_version"
# Oldest first; a test keeps it equal to the scripts in migrations/versions.
VERSIONS = ("0001",)
HEAD = VERSIONS[-1]
SCRIPTS = Path(__file__).parent / "migrations"
# Any fixed number: processes that create one PostgreSQL store at once wait for each other.
_LOCK = 7_202_605_811


def version_of(connection: Connection) -> str | None:
    """Return the version of the store behind a connection, None for an empty database.

    Raises StoreError for a database that holds something else.
    """
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE in names:
        return _version(connection)
    foreign = names if connection.dialect.name == "sqlite" else names & set(Base.metadata.tables)
    if foreign:
        raise StoreError(
            f"it is a database of something else (tables {', '.join(sorted(foreign)[:5])}); "
            "expected a Bandwatch store or an empty database; choose another file or schema"
        )
    return None


def _version(connection: Connection) -> str | None:
    row = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).first()  # noqa: S608 - a constant
    return None if row is None else str(row[0])


def refuse_upgraded(connection: Connection) -> None:
    """Raise StoreError where somebody upgraded the store since this process opened it.

    To be asked by whoever holds the write lock, for which an upgrade waits.
    """
    version = _version(connection)
    if version != HEAD:
        refuse_unless_current(version or "unknown")


def refuse_unless_current(version: str) -> None:
    """Raise StoreError for a store whose schema is older or newer than this code's."""
    if version == HEAD:
        return
    if version in VERSIONS:
        raise StoreError(
            f"its schema is {version}, older than this version's {HEAD}; "
            "run `bandwatch db upgrade`, which makes a backup first"
        )
    raise StoreError(
        f"its schema is {version}, newer than this version's {HEAD}; "
        "upgrade bandwatch; nothing was changed"
    )


def upgrade(engine: Engine) -> None:
    """Bring a store or an empty database to HEAD: every step or none, one process at once."""
    # Late: a store that is up to date never needs Alembic.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    if engine.dialect.name == "sqlite":
        _use_wal(engine)
    with _locked(engine) as connection:
        version = version_of(connection)
        if version is None:
            _refuse_encoding(connection)
        elif version not in VERSIONS:
            refuse_unless_current(version)
        if version is not None and connection.dialect.name == "postgresql":
            # The write lock: who writes now is waited for, who writes next finds the new version.
            connection.execute(select(Meta.id).with_for_update())
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)


def _refuse_encoding(connection: Connection) -> None:
    """Raise StoreError for a server's database that cannot hold text of every language."""
    if connection.dialect.name != "postgresql":
        return
    found = connection.execute(text("SHOW server_encoding")).scalar_one()
    if found != "UTF8":
        raise StoreError(
            f"its encoding is {found}; expected UTF8; create a database with ENCODING 'UTF8' "
            "TEMPLATE template0 (docs/operate.md)"
        )


@contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    with engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        yield connection


def _use_wal(engine: Engine) -> None:
    # Readers then never wait for a writer. The setting stays in the file.
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()
