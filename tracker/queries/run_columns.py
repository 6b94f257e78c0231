"""The runs on one GPU model as columns, kept until the store's revision changes.

Every series of a page needs the same runs: they are read and put in order once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from tracker.model import Environment
from tracker.queries.columns import raw, read_columns
from tracker.queries.order import Graph, graph
from tracker.store import Store
from tracker.store.reader import environments
from tracker.store.schema import GpuModelRow, Meta, RunRow

Floats = NDArray[np.float64]
_NAMES = (
    "id",
    "run_id",
    "commit_id",
    "branch",
    "started",
    "dirty",
    "complete",
    "environment_id",
    "device_id",
)
_COLUMNS = tuple(raw(getattr(RunRow, name)) for name in _NAMES)


@dataclass(frozen=True, slots=True)
class RunColumns:
    """Runs by rising `number`; `place` is that of the commit in its order, -1 without a commit.

    `of_many` says that the store has runs on other GPU models too.
    """

    number: NDArray[np.int64]
    run_id: NDArray[np.str_]
    sha: NDArray[np.str_]
    branch: NDArray[np.str_]
    started: Floats
    dirty: NDArray[np.bool_]
    complete: NDArray[np.bool_]
    environment: NDArray[np.int64]
    device: NDArray[np.int64]
    place: Floats
    environments: Mapping[int, Environment]
    of_many: bool

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of each run's number, -1 for one that is not among these."""
        if not self.number.size:
            return np.full(numbers.shape, -1, np.int64)
        found = np.minimum(np.searchsorted(self.number, numbers), self.number.size - 1)
        return np.where(self.number[found] == numbers, found, -1)


def run_columns(store: Store, connection: Connection, model_id: int) -> RunColumns:
    """Return the runs on a GPU model."""
    key = f"runs of model {model_id}"
    revision = connection.execute(select(Meta.revision)).scalar_one()
    held = store.cache.get(key)
    if held is None or held[0] != revision:
        models = connection.execute(select(func.count()).select_from(GpuModelRow)).scalar_one()
        query = select(*_COLUMNS).order_by(RunRow.id)
        if models > 1:  # of one model, to go by the index takes half as long again
            query = query.where(RunRow.gpu_model_id == model_id)
        columns = read_columns(connection, query)
        known = environments(connection, set(columns[7]))
        held = (revision, _arrays(columns, graph(store, connection), known, models > 1))
        store.cache[key] = held
    found: RunColumns = held[1]
    return found


def _arrays(
    columns: Sequence[Sequence[Any]],
    commits: Graph,
    known: Mapping[int, Environment],
    of_many: bool,
) -> RunColumns:
    numbers, run_ids, commit_ids, branches, started, dirty, complete, where, devices = columns
    # A run outside a checkout has no commit: NaN, and no row.
    of_commit = np.array(commit_ids, np.float64)
    placed = ~np.isnan(of_commit)
    rows = commits.rows_of(of_commit[placed].astype(np.int64))
    sha = np.zeros(placed.shape, commits.sha.dtype)
    place = np.full(placed.shape, -1.0)
    sha[placed], place[placed] = commits.sha[rows], commits.place[rows]
    return RunColumns(
        number=np.array(numbers, np.int64),
        run_id=np.array(run_ids, np.str_),
        sha=sha,
        branch=np.array([name or "" for name in branches], np.str_),
        started=np.array(started, np.float64),
        dirty=np.array(dirty, np.bool_),
        complete=np.array(complete, np.bool_),
        environment=np.array(where, np.int64),
        device=np.array(devices, np.int64),
        place=place,
        environments=known,
        of_many=of_many,
    )
