"""One door to all formats: what of a store is written, and how."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, select

from tracker.errors import NotFoundError, RecordError
from tracker.exporters.lines import lines
from tracker.exporters.metrics import to_bencher, to_github_action_benchmark, to_openmetrics
from tracker.exporters.tables import to_csv, to_parquet
from tracker.exporters.whole import write_whole
from tracker.occasion import meant, newest
from tracker.queries import RunInfo, gpu_models
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


def export(
    store: Store,
    form: str,
    scope: Scope,
    path: Path | None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[bytes]:
    """Return the pieces of an export; Parquet is written into `path` instead and gives none.

    `bmf` and `github-action-benchmark` hold one run, by default the newest of the suite;
    `openmetrics` that of each GPU model. `tell` gets a line where newer runs were left out. Raises
    NotFoundError for a run that does not exist, and where none is of the suite.
    """
    said = _Telling(store, scope, tell)
    match form:
        case "jsonl":
            return lines(store, *said.conditions())
        case "csv":
            return to_csv(store, *said.conditions())
        case "parquet":
            if path is None:
                raise RecordError("cannot export Parquet to standard output; name a file: --output")
            to_parquet(store, path, *said.conditions())
            return iter(())
        case "bmf":
            return to_bencher(store, said.one())
        case "github-action-benchmark":
            return to_github_action_benchmark(store, said.one())
    return to_openmetrics(store, said.of_each_model())


@dataclass(frozen=True, slots=True)
class _Telling:
    """Finds the runs of a scope, and tells which newer ones were left out."""

    store: Store
    scope: Scope
    tell: Callable[[str], None]

    def conditions(self) -> tuple[ColumnElement[bool], ...]:
        """Return what the rows of `runs` must meet."""
        if self.scope.run is not None:
            return (RunRow.id == self.one().number,)
        if self.scope.gpu_model is None:
            return ()
        self._check_model()
        on_model = select(GpuModelRow.id).where(GpuModelRow.name == self.scope.gpu_model)
        return (RunRow.gpu_model_id.in_(on_model),)

    def one(self) -> RunInfo:
        """Return the run that is named, else the newest of the suite."""
        named = "latest" if self.scope.run is None else self.scope.run
        found = meant(self.store, named, self.scope.gpu_model)
        for line in found.named:
            self.tell(line)
        return found.run

    def of_each_model(self) -> list[RunInfo]:
        """Return the run that is named, else the newest of the suite of each GPU model."""
        if self.scope.run is not None:
            return [self.one()]
        if self.scope.gpu_model is not None:
            self._check_model()
        names = dict.fromkeys(model.name for model in gpu_models(self.store))
        runs = []
        for name in names:
            if self.scope.gpu_model not in {None, name}:
                continue
            found = newest(self.store, gpu_model=name)
            if found is None:
                self.tell(f"no run on {name} is of the suite, so it is left out")
                continue
            for line in found.named:
                self.tell(line)
            runs.append(found.run)
        return runs

    def _check_model(self) -> None:
        name = self.scope.gpu_model
        if name not in {model.name for model in gpu_models(self.store)}:
            raise NotFoundError(
                f"cannot export: {self.store.name} holds no GPU model {name!a}; "
                "`bandwatch list` shows what there is"
            )
