"""Many rows as columns, fast: plain tuples from the driver, turned over at once."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Select, type_coerce
from sqlalchemy.engine import Connection
from sqlalchemy.types import NULLTYPE

from tracker.store.engine import BINARY


def raw(column: Any) -> Any:
    """Return a column as the driver gives it: NumPy turns whole columns into its types, faster."""
    return type_coerce(column, NULLTYPE)


def read_columns(
    connection: Connection, query: Select[Any], parameters: Mapping[str, Any] | None = None
) -> list[Sequence[Any]]:
    """Return the columns of a query's rows, each empty where there are none."""
    with collector_paused():
        result = connection.execute(query, parameters, execution_options={BINARY: True})
        # Not `result.all()`: an object for each of 10,000 rows takes as long as reading them.
        rows = result.cursor.fetchall()
        result.close()
        return list(zip(*rows, strict=True)) if rows else [()] * len(query.selected_columns)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make many objects without cycles: each 700 would have the collector look at all there are."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
