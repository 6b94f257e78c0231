"""One door to all formats: what of a store is written, and how."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement

from tracker.errors import RecordError
from tracker.exporters.flat import to_csv, to_parquet
from tracker.exporters.lines import lines
from tracker.exporters.metrics import to_bencher, to_github_action_benchmark, to_openmetrics
from tracker.queries import RunInfo, find_run, newest_runs, runs
from tracker.store import Store
from tracker.store.schema import RunRow

FORMATS = ("jsonl", "csv", "parquet", "bmf", "github-action-benchmark", "openmetrics")
BINARY = "parquet"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which runs: one by what a person calls it, those of a GPU model, or all (None, None)."""

    run: str | None = None
    gpu_model: str | None = None


def export(store: Store, form: str, scope: Scope, path: Path | None) -> Iterator[bytes]:
    """Return the pieces of an export; Parquet is written into `path` instead and gives none.

    `bmf` and `github-action-benchmark` hold one run, the newest by default; `openmetrics` the
    newest of each GPU model. Raises NotFoundError for a run that does not exist.
    """
    match form:
        case "jsonl":
            return lines(store, *_conditions(store, scope))
        case "csv":
            return to_csv(store, _oldest_first(store, scope))
        case "parquet":
            if path is None:
                raise RecordError("cannot export Parquet to standard output; name a file: --output")
            to_parquet(store, _oldest_first(store, scope), path)
            return iter(())
        case "bmf":
            return to_bencher(store, _one(store, scope))
        case "github-action-benchmark":
            return to_github_action_benchmark(store, _one(store, scope))
    return to_openmetrics(store, _newest(store, scope))


def write_whole(pieces: Iterable[bytes], path: Path) -> int:
    """Write pieces into a file, whole or not at all, and return its size in bytes."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.writelines(pieces)
        partial.replace(path)
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def _conditions(store: Store, scope: Scope) -> tuple[ColumnElement[bool], ...]:
    if scope.run is None and scope.gpu_model is None:
        return ()
    chosen = [info.number for info in _oldest_first(store, scope)]
    return (RunRow.id.in_(chosen),)


def _oldest_first(store: Store, scope: Scope) -> list[RunInfo]:
    if scope.run is not None:
        return [_one(store, scope)]
    return sorted(runs(store, gpu_model=scope.gpu_model, limit=None), key=lambda run: run.number)


def _one(store: Store, scope: Scope) -> RunInfo:
    return find_run(store, scope.run or "latest", gpu_model=scope.gpu_model)


def _newest(store: Store, scope: Scope) -> list[RunInfo]:
    if scope.run is not None:
        return [_one(store, scope)]
    return [run for run in newest_runs(store) if scope.gpu_model in {None, run.gpu_model}]
