"""One door to all formats: what of a store is written, and how."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, select

from tracker.errors import NotFoundError, RecordError
from tracker.exporters.lines import lines
from tracker.exporters.metrics import to_bencher, to_github_action_benchmark, to_openmetrics
from tracker.exporters.tables import to_csv, to_parquet
from tracker.exporters.whole import write_whole
from tracker.queries import RunInfo, find_run, gpu_models, newest_runs
from tracker.store import Store
from tracker.store.schema import GpuModelRow, RunRow

__all__ = ["BINARY", "FORMATS", "Scope", "export", "write_whole"]
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
            return to_csv(store, *_conditions(store, scope))
        case "parquet":
            if path is None:
                raise RecordError("cannot export Parquet to standard output; name a file: --output")
            to_parquet(store, path, *_conditions(store, scope))
            return iter(())
        case "bmf":
            return to_bencher(store, _one(store, scope))
        case "github-action-benchmark":
            return to_github_action_benchmark(store, _one(store, scope))
    return to_openmetrics(store, _newest(store, scope))


def _conditions(store: Store, scope: Scope) -> tuple[ColumnElement[bool], ...]:
    if scope.run is None and scope.gpu_model is None:
        return ()
    if scope.run is not None:
        return (RunRow.id == _one(store, scope).number,)
    if scope.gpu_model not in {model.name for model in gpu_models(store)}:
        raise NotFoundError(
            f"cannot export: {store.name} holds no GPU model {scope.gpu_model!a}; "
            "`bandwatch list` shows what there is"
        )
    on_model = select(GpuModelRow.id).where(GpuModelRow.name == scope.gpu_model)
    return (RunRow.gpu_model_id.in_(on_model),)


def _one(store: Store, scope: Scope) -> RunInfo:
    return find_run(store, scope.run or "latest", gpu_model=scope.gpu_model)


def _newest(store: Store, scope: Scope) -> list[RunInfo]:
    if scope.run is not None:
        return [_one(store, scope)]
    return [run for run in newest_runs(store) if scope.gpu_model in {None, run.gpu_model}]
