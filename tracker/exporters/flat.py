"""Results as one flat table: a row each, base units named in the column names."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from tracker.model import Result, Run
from tracker.queries import RunInfo, results
from tracker.report.escape import csv_text
from tracker.store import Store

Cell = str | int | float | bool | tuple[float, ...] | None
_TIMES = ("median_s", "mean_s", "min_s", "max_s", "q1_s", "q3_s", "stddev_s")


def _sha(run: Run | RunInfo) -> str | None:
    return run.checkout.commit.sha if run.checkout.commit else None


def _of_summary(name: str) -> Callable[[Result], Cell]:
    return lambda result: getattr(result.summary, name) if result.summary else None


# Column: its type, and what stands in it.
_OF_RUN: dict[str, tuple[type, Callable[[Run | RunInfo], Cell]]] = {
    "run": (str, lambda run: run.run_id),
    "started_at": (str, lambda run: run.started_at),
    "commit": (str, _sha),
    "branch": (str, lambda run: run.checkout.branch),
    "dirty": (bool, lambda run: run.checkout.dirty),
    "complete": (bool, lambda run: run.complete),
    "demo": (bool, lambda run: run.demo),
    "backend": (str, lambda run: run.environment.backend),
    "gpu_model": (str, lambda run: run.environment.gpu_model),
    "device": (str, lambda run: run.device.uuid),
    "environment": (str, lambda run: run.environment.fingerprint),
    "driver": (str, lambda run: run.environment.driver),
    "cuda": (str, lambda run: run.environment.cuda),
}
_OF_RESULT: dict[str, tuple[type, Callable[[Result], Cell]]] = {
    "case": (str, lambda result: result.case.fingerprint),
    "kernel": (str, lambda result: result.case.kernel),
    "implementation": (str, lambda result: result.case.implementation),
    "dtype": (str, lambda result: result.case.dtype),
    "shape": (str, lambda result: "x".join(map(str, result.case.shape))),
    "alignment": (str, lambda result: result.case.alignment),
    "cache": (str, lambda result: result.case.cache),
    "parameters": (str, lambda result: json.dumps(dict(result.case.parameters), sort_keys=True)),
    "case_version": (int, lambda result: result.case.version),
    "status": (str, lambda result: result.status.value),
    "correct": (bool, lambda result: result.correctness.passed),
    "count": (int, _of_summary("count")),
    **{name: (float, _of_summary(name)) for name in _TIMES},
    "bytes_moved_bytes": (int, lambda result: result.bytes_moved),
    "flop": (int, lambda result: result.flop),
    "bandwidth_bytes_per_s": (float, lambda result: result.bandwidth),
    "copy_bytes_per_s": (float, lambda result: result.peaks.copy_bytes_per_s),
    "copy_fraction": (float, lambda result: result.copy_fraction),
    "median_cycles": (float, lambda result: result.median_cycles),
    "code_fingerprint": (str, lambda result: result.code_fingerprint),
    "warnings": (str, lambda result: "; ".join(w.code for w in result.warnings)),
    "measurements_s": (tuple, lambda result: result.measurements_s),
}
COLUMNS: dict[str, type] = {
    name: kind for columns in (_OF_RUN, _OF_RESULT) for name, (kind, _) in columns.items()
}


def run_cells(run: Run | RunInfo) -> list[Cell]:
    """Return what a run's rows say of the run, in the order of the columns."""
    return [cell(run) for _, cell in _OF_RUN.values()]


def result_cells(result: Result) -> list[Cell]:
    """Return what a row says of its result: the columns after those of `run_cells`."""
    return [cell(result) for _, cell in _OF_RESULT.values()]


def to_csv(store: Store, runs: Iterable[RunInfo]) -> Iterator[bytes]:
    """Yield CSV lines, a result each: full precision, measurements apart by spaces.

    The last column is an empty kernel's time, which a whole export holds in its records.
    """
    yield csv_line([*COLUMNS, "floor_s"])
    for run in runs:
        for result in results(store, run):
            cells = (*run_cells(run), *result_cells(result), result.peaks.floor_s)
            yield csv_line(list(map(cell_text, cells)))


def csv_line(cells: Sequence[str]) -> bytes:
    """Return one row of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()


def cell_text(cell: Cell) -> str:
    """Return a cell as CSV holds it: absent values empty, no text that is a formula."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, tuple):
        return " ".join(map(repr, cell))
    return csv_text(cell) if isinstance(cell, str) else repr(cell)
