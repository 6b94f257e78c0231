"""Engines for both databases: transactions that mean the same on each."""

import os
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import NoSuchModuleError
from sqlalchemy.pool import NullPool

from tracker.errors import StoreError
from tracker.store.address import file_of, shown

BUSY_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10
# A connection's execution option: the transaction takes the write lock from its first statement.
WRITING = "bandwatch_writing"
# A statement's execution option: the server sends numbers as they are, which is read twice as fast.
BINARY = "bandwatch_binary"

# A run that was reported as recorded survives the server's death, whatever the server's default.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)


# Floats come back to the last bit, even where the server was told to send fewer digits.
_OWN_SETTINGS = (
    "SELECT set_config('lock_timeout', '{}s', true), set_config('extra_float_digits', '1', true)"
)


def make_engine(url: URL, *, read_only: bool) -> Engine:
    """Return an engine on a store that exists or may be created; nothing is opened yet."""
    path = file_of(url)
    return (
        _sqlite(path, read_only=read_only)
        if path is not None
        else _postgresql(url, read_only=read_only)
    )


# What is opened again is the same engine, so that each statement becomes SQL once a process.
@lru_cache(maxsize=16)
def _sqlite(path: Path, *, read_only: bool) -> Engine:
    # NullPool: a file is opened in microseconds, and no connection outlives a fork or a test.
    engine = create_engine(
        "sqlite://",
        creator=lambda: open_file(path, read_only=read_only),
        poolclass=NullPool,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The driver is in autocommit mode, so that this is the only place where one starts.
        # IMMEDIATE: a writer waits for its turn here, and can never fail half-way for a lock.
        writing = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def open_file(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Return a connection on an SQLite store's file, one in a folder that nobody may write too."""
    name = quote(str(path.absolute()))
    mode = "ro" if read_only else "rw"
    if read_only and _is_frozen(path):
        mode += "&immutable=1"
    connection = sqlite3.connect(
        f"file:{name}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    # FULL: a commit that was reported survives a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA temp_store = MEMORY")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _is_frozen(path: Path) -> bool:
    """Whether nobody can be writing, and SQLite could not make the files that it keeps beside."""
    beside = path.with_name(path.name + "-wal")
    return not os.access(path.parent, os.W_OK) and not beside.exists()


def _postgresql(url: URL, *, read_only: bool) -> Engine:
    # Whatever the server, the role or the surroundings choose: names are text of any language.
    arguments: dict[str, Any] = {"application_name": "bandwatch", "client_encoding": "utf8"}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = _CONNECT_TIMEOUT_S
    try:
        engine = create_engine(url, pool_pre_ping=True, connect_args=arguments)
    except (ImportError, NoSuchModuleError) as error:
        raise StoreError(
            f"cannot open the store {shown(url)}: the driver psycopg is missing; "
            "install it: pip install 'psycopg[binary]>=3.2'"
        ) from error

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # One snapshot for all reads of a transaction; a writer must see what the last one wrote.
        writing = connection.get_execution_options().get(WRITING, False)
        level = "READ COMMITTED" if writing else "REPEATABLE READ, READ ONLY"
        connection.exec_driver_sql(f"SET TRANSACTION ISOLATION LEVEL {level}")
        connection.exec_driver_sql(_OWN_SETTINGS.format(int(BUSY_TIMEOUT_S)))
        if writing:
            connection.exec_driver_sql(_DURABLE)

    @event.listens_for(engine, "before_cursor_execute")
    def _format(*arguments: Any) -> None:
        _, cursor, _, _, context, _ = arguments
        if context.execution_options.get(BINARY, False):
            cursor.format = 1

    del read_only  # A store refuses to write when it was opened for reading.
    return engine
