"""A whole store into an empty one on either engine, verified; and backups of a store."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Table, func, insert, select, update
from sqlalchemy.engine import Connection

from tracker.errors import StoreError
from tracker.store.engine import open_file
from tracker.store.schema import Base, Meta, RunRow
from tracker.store.store import Store
from tracker.store.trouble import telling

_BATCH = 5000


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied and verified: rows by table, and the digest of each table's content."""

    rows: dict[str, int]
    digests: dict[str, str]


def tables() -> tuple[Table, ...]:
    """Return every table, those that others refer to first."""
    return tuple(Base.metadata.sorted_tables)


def copy_store(source: Store, target: Store) -> Copied:
    """Copy everything into an empty store and verify it, in one transaction of the target.

    Ids, revision and the store's own id stay the same. Raises StoreError, with the target left
    empty, when the target holds runs already or when what arrived differs from what was sent.
    """
    with (
        source.reading("read the source") as reader,
        target.writing("copy into the store") as (writer, _),
    ):
        _refuse_filled(writer, target)
        sent = {table.name: _copy_table(reader, writer, table) for table in tables()}
        for table in tables():
            arrived = digest_of(writer, table)
            if arrived != sent[table.name]:
                raise StoreError(
                    f"cannot copy into {target.name}: table {table.name} arrived with "
                    f"{arrived[0]} rows and digest {arrived[1][:12]}; expected "
                    f"{sent[table.name][0]} and {sent[table.name][1][:12]}; nothing was changed"
                )
    return Copied(
        {name: count for name, (count, _) in sent.items()},
        {name: digest for name, (_, digest) in sent.items()},
    )


def _refuse_filled(writer: Connection, target: Store) -> None:
    for table in (RunRow.__table__, *tables()):
        held = writer.execute(select(func.count()).select_from(table)).scalar_one()
        if held and table.name != Meta.__tablename__:
            raise StoreError(
                f"cannot copy into {target.name}: it holds {held} {table.name}; expected an empty "
                "store; to add runs to it, use `bandwatch export` and `bandwatch import`"
            )


def _copy_table(reader: Connection, writer: Connection, table: Table) -> tuple[int, str]:
    whole, count = hashlib.sha256(), 0
    for rows in _batches(reader, table):
        count += len(rows)
        for row in rows:
            whole.update(_line(tuple(row.values())))
        if table.name == Meta.__tablename__:
            writer.execute(update(table).values(**rows[0]))
        else:
            writer.execute(insert(table), rows)
    return count, whole.hexdigest()


def digest_of(connection: Connection, table: Table) -> tuple[int, str]:
    """Return a table's number of rows and the digest of their content, the same on each engine."""
    whole, count = hashlib.sha256(), 0
    for rows in _batches(connection, table):
        count += len(rows)
        for row in rows:
            whole.update(_line(tuple(row.values())))
    return count, whole.hexdigest()


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    query = select(table).order_by(*table.primary_key.columns)
    result = connection.execution_options(yield_per=_BATCH).execute(query)
    for part in result.mappings().partitions():
        yield [dict(row) for row in part]


def _line(row: tuple[Any, ...]) -> bytes:
    # repr of a float is exact, and tells bytes, texts, numbers and None apart.
    return repr(row).encode() + b"\n"


def backup(store: Store, path: Path) -> int:
    """Write a store into a new SQLite file, whole or not at all, and return its size in bytes.

    A server's store becomes a file as well. Raises StoreError for a file that exists already.
    """
    if path.exists():
        raise StoreError(f"cannot back up into {path}: it exists; name a file that does not")
    if not path.parent.is_dir():
        raise StoreError(f"cannot back up into {path}: there is no such folder")
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with telling(f"back up into {path}", store.url):
            if store.path is not None:
                _copy_file(store.path, partial)
            else:
                with Store.open(str(partial)) as target:
                    copy_store(store, target)
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"cannot back up into {path}: {error.strerror or error}") from error
    finally:
        for left in ("", "-wal", "-shm", "-journal"):
            partial.with_name(partial.name + left).unlink(missing_ok=True)
    return path.stat().st_size


def _copy_file(source: Path, target: Path) -> None:
    """Copy an SQLite file as of one moment, while others read and write it, and check the copy."""
    with (
        closing(open_file(source, read_only=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
        # One file without others beside it: what was only in the write-ahead log is in it too.
        new.execute("PRAGMA journal_mode = DELETE")
        found = new.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise StoreError(f"cannot back up {source}: the copy is damaged: {found}")
