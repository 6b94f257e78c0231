"""CSV and Parquet of `bandwatch export`, thing by thing; see tracker.exporters.tables.

The last column of a row says all but the measurements; the columns between say parts of it again.
Where they disagree somebody has changed the file, and it is refused.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tracker.errors import RecordError, StoreError
from tracker.exporters.content import KINDS
from tracker.exporters.flat import COLUMNS, Cell, cell_text, result_cells, run_cells
from tracker.exporters.tables import TABLE, arrow_schema
from tracker.importers.document import MAX_THING, Document
from tracker.importers.view import View
from tracker.model import Run
from tracker.record import MAX_BYTES, SCHEMA_VERSION, parse_json
from tracker.record.strict import shorten

CSV_BEGINNING = b"row,run,started_at,"
PARQUET_BEGINNING = b"PAR1"
_MEASUREMENTS = list(TABLE).index("measurements_s")
# Few rows at once: a column that repeats one long text is small in a file and large in memory.
_ROWS = 64
_MOST_RESULTS = 100_000
# Where a row stands, its cells, and its bytes.
Placed = tuple[str, Sequence[Any], int]


def csv_documents(path: Path) -> Iterator[Document]:
    """Yield a CSV file's things. Raises RecordError for one that is damaged or was changed."""
    return _documents(_csv_rows(path), cell_text, _from_text)


def parquet_documents(path: Path) -> Iterator[Document]:
    """Yield a Parquet file's things; errors as for CSV, StoreError without pyarrow."""
    return _documents(_parquet_rows(path), _plain, _plain)


def _plain(cell: Any) -> Any:
    return list(cell) if isinstance(cell, tuple) else cell


def _from_text(cell: str) -> list[float]:
    return [float(part) for part in cell.split(" ")] if cell else []


def _csv_rows(path: Path) -> Iterator[Placed]:
    with path.open("rb") as stream:
        place = [0, 0]
        reader = csv.reader(_csv_lines(stream, str(path), place), strict=True)
        try:
            for number, row in enumerate(iter(lambda: _next(reader), None), start=1):
                where = f"{path} line {place[0]}"
                if number == 1:
                    _check_columns(row, where)
                elif len(row) != len(TABLE):
                    raise RecordError(
                        f"cannot read {where}: {len(row)} cells; expected {len(TABLE)}"
                    )
                else:
                    yield where, row, place[1]
                place[1] = 0
        except csv.Error as error:
            raise RecordError(f"cannot read {path} line {place[0]}: {error}") from error


def _csv_lines(stream: Any, name: str, place: list[int]) -> Iterator[str]:
    """Yield lines; `place` counts them, and the bytes of the row that they belong to."""
    for data in iter(lambda: stream.readline(MAX_THING + 1), b""):
        place[0] += 1
        place[1] += len(data)
        if place[1] > MAX_THING:
            raise RecordError(
                f"cannot read {name} line {place[0]}: longer than {MAX_THING:,} bytes"
            )
        try:
            yield data.decode()
        except UnicodeDecodeError as error:
            raise RecordError(
                f"cannot read {name} line {place[0]}: byte {error.start} is not UTF-8; expected "
                "the file as `bandwatch export` wrote it"
            ) from error


def _next(reader: Iterator[list[str]]) -> list[str] | None:
    # A sample of 100,000 measurements is longer than the module's own limit, which is everybody's.
    before = csv.field_size_limit(MAX_BYTES)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(before)


def _check_columns(found: Sequence[str], where: str) -> None:
    expected = list(TABLE)
    if list(found) != expected:
        other = next((a for a, b in zip(found, expected, strict=False) if a != b), len(found))
        raise RecordError(
            f"cannot read {where}: its columns are not those of `bandwatch export` (the first "
            f"other one: {shorten(other)}); export it again"
        )


def _parquet_rows(path: Path) -> Iterator[Placed]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise StoreError(
            f"cannot read {path}: pyarrow is missing; install it (pip install pyarrow), "
            "or export CSV or JSON lines"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            _check_columns(file.schema_arrow.names, str(path))
            if file.schema_arrow != arrow_schema():
                raise RecordError(f"cannot read {path}: its columns have other types; export again")
            _check_sizes(file.metadata, str(path))
            number = 0
            for batch in file.iter_batches(batch_size=_ROWS):
                size = batch.nbytes // max(1, batch.num_rows)
                columns = [column.to_pylist() for column in batch.columns]
                for row in zip(*columns, strict=True):
                    number += 1
                    yield f"{path} row {number}", row, size
    except (pa.ArrowException, OSError) as error:
        told = " ".join(str(error).split())[:200]
        raise RecordError(f"cannot read {path}: it is no sound Parquet file ({told})") from error


def _check_sizes(metadata: Any, name: str) -> None:
    """Refuse what would unfold into more than a thing may be, before anything is read."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        sizes = (
            row_group.column(column).total_uncompressed_size
            for column in range(row_group.num_columns)
        )
        if sum(sizes) > MAX_THING:
            raise RecordError(
                f"cannot read {name}: row group {group} unfolds into more than {MAX_THING:,} bytes"
            )


def _documents(
    rows: Iterator[Placed],
    written: Callable[[Cell], Any],
    measurements: Callable[[Any], Any],
) -> Iterator[Document]:
    """Put rows together; `written` is how the form writes a cell, `measurements` reads a sample."""
    empty = [written(None)] * len(COLUMNS)
    for where, row, size in rows:
        kind, rest = row[0], _rest(where, row)
        if kind == "run":
            yield _run(where, row, rest, rows, size, written, measurements)
        elif kind not in (*KINDS, "store", "end"):
            raise RecordError(
                f"cannot read {where}: row is {shorten(kind)}; expected store, commit, run, "
                "triage, waiver, end or a run's result"
            )
        elif list(row[1:-1]) != empty:
            raise RecordError(f"cannot read {where}: a row of {kind} with cells that are not its")
        else:
            yield Document(where, rest if kind == "store" else {kind: rest})


def _rest(where: str, row: Sequence[Any]) -> dict[str, Any]:
    text = row[-1]
    if not isinstance(text, str):
        raise RecordError(f"cannot read {where}: record is {shorten(text)}; expected a JSON object")
    return dict(View.of(parse_json(text.encode(errors="replace"), where), where).data)


def _run(
    where: str,
    row: Sequence[Any],
    rest: dict[str, Any],
    rows: Iterator[Placed],
    size: int,
    written: Callable[[Cell], Any],
    measurements: Callable[[Any], Any],
) -> Document:
    """Return a run of which `row` is the first; the rows of its results are taken from `rows`."""
    view = View(rest, "", where)
    count = view.whole_or_none("results")
    if count is None or count > _MOST_RESULTS:
        view.refuse("results", f"how many results follow, at most {_MOST_RESULTS:,}")
    results: list[dict[str, Any]] = []
    cells = [row[1:-1]]
    for _ in range(count):
        place, found, bytes_ = next(rows, (where, ("end",), 0))
        if found[0] != "result":
            raise RecordError(
                f"cannot read {place}: found {shorten(found[0])} after {len(results)} of {count} "
                f"results of the run of {where}; nothing was changed"
            )
        size += bytes_
        if size > MAX_THING:
            raise RecordError(f"cannot read {place}: a run longer than {MAX_THING:,} bytes")
        results.append(_result(place, found, measurements))
        cells.append(found[1:-1])
    header = view.view("run").data
    document = {"schema": SCHEMA_VERSION, "kind": "run", **header, "results": results}
    check = partial(_compare, where, cells, written)
    return Document(where, {"run": document, "stored": rest.get("stored")}, check)


def _result(where: str, row: Sequence[Any], measurements: Callable[[Any], Any]) -> dict[str, Any]:
    rest = _rest(where, row)
    try:
        rest["measurements_s"] = measurements(row[_MEASUREMENTS])
    except ValueError as error:
        raise RecordError(f"cannot read {where}: measurements_s: {error}") from error
    return rest


def _compare(
    where: str, found: Sequence[Sequence[Any]], written: Callable[[Cell], Any], run: Run
) -> None:
    """Raise RecordError where the columns are not what the run says."""
    told = run_cells(run)
    lines = [[*told, *[None] * (len(COLUMNS) - len(told))]]
    lines += [[*told, *result_cells(result)] for result in run.results]
    for number, (line, cells) in enumerate(zip(lines, found, strict=True)):
        for name, cell, other in zip(COLUMNS, map(written, line), cells, strict=True):
            if cell != other:
                raise RecordError(
                    f"cannot read {where}: {name} is {shorten(other)} {number} rows on, but the "
                    f"row's record says {shorten(cell)}; the file was changed; export it again"
                )
