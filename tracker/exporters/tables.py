"""A store as one table in CSV or Parquet: everything that it holds, a row each.

The first column says what a row is: `store`, `commit`, `run`, `result`, `triage`, `waiver`, `end`.
A run's row stands before those of its results, which are what people look for: the columns between
are theirs, in base units. The last column holds as JSON what no column does, so that nothing is
lost; `tracker.importers.tables` reads all of it back.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement

from tracker.errors import RecordError, StoreError
from tracker.exporters.content import Item, content
from tracker.exporters.flat import COLUMNS, Cell, cell_text, csv_line, result_cells, run_cells
from tracker.exporters.whole import whole_file
from tracker.record.dump import dump_header, dump_result
from tracker.store import Store

KIND, REST = "row", "record"
TABLE: dict[str, type] = {KIND: str, **COLUMNS, REST: str}
_BATCH = 1000
Row = list[Cell]


def rows(store: Store, *conditions: ColumnElement[bool]) -> Iterator[tuple[int, Row]]:
    """Yield the number of the thing that a row belongs to, and the row."""
    for number, item in enumerate(content(store, *conditions)):
        for row in _rows(item):
            yield number, row


def _rows(item: Item) -> Iterator[Row]:
    run = item.run
    if run is None:
        yield [item.kind, *[None] * len(COLUMNS), _json(item.value)]
        return
    told, count = run_cells(run), len(run.results)
    rest = {"run": dump_header(run), "results": count, "stored": dict(item.value)}
    yield ["run", *told, *[None] * (len(COLUMNS) - len(told)), _json(rest)]
    for result in run.results:
        rest = dump_result(result, measurements=False)
        yield ["result", *told, *result_cells(result), _json(rest)]


def _json(value: object) -> str:
    # ASCII only: no spreadsheet, terminal or reader of lines sees a character that it acts upon.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)


def to_csv(store: Store, *conditions: ColumnElement[bool]) -> Iterator[bytes]:
    """Yield CSV lines: absent values empty, full precision, measurements apart by spaces."""
    yield csv_line(list(TABLE))
    for _, row in rows(store, *conditions):
        # JSON begins with a brace, so it is no formula; escaping would change it.
        yield csv_line([*map(cell_text, row[:-1]), str(row[-1])])


def to_parquet(store: Store, path: Path, *conditions: ColumnElement[bool]) -> None:
    """Write the table as Parquet, a row group a run, whole or not at all.

    Raises StoreError without pyarrow, RecordError where the file cannot be written.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise StoreError(
            "cannot export Parquet: pyarrow is missing; install it (pip install pyarrow), "
            "or export CSV"
        ) from error
    schema = arrow_schema()
    with whole_file(path) as partial:
        try:
            with parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
                for part in _groups(rows(store, *conditions)):
                    arrays = [
                        pa.array(values, type=field.type)
                        for values, field in zip(zip(*part, strict=True), schema, strict=True)
                    ]
                    writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        except pa.ArrowException as error:
            raise RecordError(f"cannot write {path}: {' '.join(str(error).split())}") from error


def arrow_schema() -> Any:
    """Return the columns as Parquet has them."""
    import pyarrow as pa

    kinds: dict[type, Any] = {
        str: pa.string(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        tuple: pa.list_(pa.float64()),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in TABLE.items()])


def _groups(numbered: Iterator[tuple[int, Row]]) -> Iterator[list[Row]]:
    """Yield rows in groups: a run with its results, or many of the others."""
    waiting: list[Row] = []
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        whole = [row for _, row in group]
        if waiting and (len(whole) > 1 or len(waiting) >= _BATCH):
            yield waiting
            waiting = []
        waiting += whole
        if len(whole) > 1:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
