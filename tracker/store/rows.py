"""Rows by key, ids and bulk inserts: what every writer to the tables needs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.engine import Connection

from tracker.store.schema import Base

# Below every engine's limit on the parameters of one statement.
_CHUNK = 1000


def now() -> str:
    """Return the time in UTC as ISO 8601 text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def next_id(connection: Connection, table: type[Base]) -> int:
    """Return the id after the largest of a table; the write lock keeps it free."""
    highest = connection.execute(select(func.max(table.__table__.c.id))).scalar()
    return (highest or 0) + 1


def id_of(connection: Connection, table: type[Base], **key: Any) -> int:
    """Return the id of the row with this key, inserted if there is none."""
    columns = table.__table__.c
    found = connection.execute(
        select(columns.id).where(*(columns[k] == v for k, v in key.items()))
    ).scalar()
    if found is not None:
        return int(found)
    new = next_id(connection, table)
    connection.execute(insert(table), {"id": new, **key})
    return new


def ids_by_key(
    connection: Connection, table: type[Base], column: str, keys: Iterable[str]
) -> dict[str, int]:
    """Return the ids of the rows whose `column` is among the keys, by key."""
    columns = table.__table__.c
    found: dict[str, int] = {}
    for chunk in chunks(keys):
        rows = connection.execute(
            select(columns[column], columns.id).where(columns[column].in_(chunk))
        )
        found |= {row[0]: row[1] for row in rows}
    return found


def insert_all(
    connection: Connection, table: type[Base], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows that all name the same columns."""
    if rows:
        connection.execute(insert(table), rows)


def chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the items in lists that one statement can take as parameters."""
    iterator = iter(items)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk
