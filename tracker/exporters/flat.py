"""Results as one flat table: a row each, base units named in the column names."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tracker.errors import StoreError
from tracker.model import Result
from tracker.queries import RunInfo, results
from tracker.report.escape import csv_text
from tracker.store import Store

Cell = str | int | float | bool | tuple[float, ...] | None
_TIMES = ("median_s", "mean_s", "min_s", "max_s", "q1_s", "q3_s", "stddev_s")


def _of_summary(name: str) -> Callable[[RunInfo, Result], Cell]:
    return lambda _, result: getattr(result.summary, name) if result.summary else None


# Column: its type, and what stands in it.
COLUMNS: dict[str, tuple[type, Callable[[RunInfo, Result], Cell]]] = {
    "run": (str, lambda run, _: run.run_id),
    "started_at": (str, lambda run, _: run.started_at),
    "commit": (str, lambda run, _: run.sha),
    "branch": (str, lambda run, _: run.checkout.branch),
    "dirty": (bool, lambda run, _: run.checkout.dirty),
    "complete": (bool, lambda run, _: run.complete),
    "demo": (bool, lambda run, _: run.demo),
    "backend": (str, lambda run, _: run.environment.backend),
    "gpu_model": (str, lambda run, _: run.gpu_model),
    "device": (str, lambda run, _: run.device.uuid),
    "environment": (str, lambda run, _: run.environment_key),
    "driver": (str, lambda run, _: run.environment.driver),
    "cuda": (str, lambda run, _: run.environment.cuda),
    "case": (str, lambda _, result: result.case.fingerprint),
    "kernel": (str, lambda _, result: result.case.kernel),
    "implementation": (str, lambda _, result: result.case.implementation),
    "dtype": (str, lambda _, result: result.case.dtype),
    "shape": (str, lambda _, result: "x".join(map(str, result.case.shape))),
    "alignment": (str, lambda _, result: result.case.alignment),
    "cache": (str, lambda _, result: result.case.cache),
    "parameters": (str, lambda _, result: json.dumps(dict(result.case.parameters), sort_keys=True)),
    "case_version": (int, lambda _, result: result.case.version),
    "status": (str, lambda _, result: result.status.value),
    "correct": (bool, lambda _, result: result.correctness.passed),
    "count": (int, _of_summary("count")),
    **{name: (float, _of_summary(name)) for name in _TIMES},
    "bytes_moved_bytes": (int, lambda _, result: result.bytes_moved),
    "flop": (int, lambda _, result: result.flop),
    "bandwidth_bytes_per_s": (float, lambda _, result: result.bandwidth),
    "copy_bytes_per_s": (float, lambda _, result: result.peaks.copy_bytes_per_s),
    "copy_fraction": (float, lambda _, result: result.copy_fraction),
    "median_cycles": (float, lambda _, result: result.median_cycles),
    "code_fingerprint": (str, lambda _, result: result.code_fingerprint),
    "warnings": (str, lambda _, result: "; ".join(w.code for w in result.warnings)),
    "measurements_s": (tuple, lambda _, result: result.measurements_s),
}


def rows(store: Store, runs: Iterable[RunInfo]) -> Iterator[list[Cell]]:
    """Yield a row for each result of the runs, in their order."""
    for run in runs:
        for result in results(store, run):
            yield [cell(run, result) for _, cell in COLUMNS.values()]


def to_csv(store: Store, runs: Iterable[RunInfo]) -> Iterator[bytes]:
    """Yield CSV lines: absent values empty, full precision, measurements apart by spaces."""
    yield _csv_line(list(COLUMNS))
    for row in rows(store, runs):
        yield _csv_line([_text(cell) for cell in row])


def _csv_line(cells: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, tuple):
        return " ".join(map(repr, cell))
    return csv_text(cell) if isinstance(cell, str) else repr(cell)


def to_parquet(store: Store, runs: Iterable[RunInfo], path: Path) -> None:
    """Write the table as Parquet, a row group a run. Raises StoreError without pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise StoreError(
            "cannot export Parquet: pyarrow is missing; install it (pip install pyarrow), "
            "or export CSV"
        ) from error
    kinds: dict[type, Any] = {
        str: pa.string(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        tuple: pa.list_(pa.float64()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, (kind, _) in COLUMNS.items()])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for run in runs:
            columns = list(zip(*rows(store, [run]), strict=True)) or [()] * len(COLUMNS)
            arrays = [
                pa.array(values, type=field.type)
                for values, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
