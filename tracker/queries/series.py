"""Series: which there are, and one of them as columns in commit order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.engine import Connection

from tracker.errors import NotFoundError
from tracker.model import Case, Environment
from tracker.queries.columns import collector_paused, raw, read_columns
from tracker.queries.run_columns import RunColumns, run_columns
from tracker.store import Store
from tracker.store.codec import unpack_all
from tracker.store.reader import case_of
from tracker.store.rows import chunks
from tracker.store.schema import (
    CaseRow,
    FactsRow,
    GpuModelRow,
    ResultRow,
    RunRow,
    SampleRow,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """Results of one case on one GPU model in commit order, as columns of one length.

    Runs of one commit follow each other by start. `started` is in seconds since 1970;
    `environment[i]` is an index into `environments`; results with equal `environment_key` are
    comparable. A missing number is NaN, a missing commit or branch an empty text. `number` is the
    store's id of a run, `result` that of a result, for `measurements`. `older` and `changed` count
    what matched and was not asked for: what comes before the last so many, and of dirty trees.
    """

    case: Case
    gpu_model: str
    environments: tuple[Environment, ...]
    environment_keys: tuple[str, ...]
    number: NDArray[np.int64]
    result: NDArray[np.int64]
    run_id: NDArray[np.str_]
    sha: NDArray[np.str_]
    branch: NDArray[np.str_]
    started: Floats
    dirty: NDArray[np.bool_]
    complete: NDArray[np.bool_]
    environment: NDArray[np.int64]
    device: NDArray[np.int64]
    code_fingerprint: NDArray[np.str_]
    status: NDArray[np.str_]
    shared: NDArray[np.bool_]
    count: NDArray[np.int64]
    median_s: Floats
    q1_s: Floats
    q3_s: Floats
    bytes_moved: Floats
    copy_bytes_per_s: Floats
    median_cycles: Floats
    older: int
    changed: int

    def __len__(self) -> int:
        return int(self.number.size)

    @property
    def bandwidth(self) -> Floats:
        """Bytes per second."""
        return self.bytes_moved / self.median_s

    @property
    def copy_fraction(self) -> Floats:
        """Bandwidth over that of a same-size copy measured in the same run."""
        return self.bandwidth / self.copy_bytes_per_s


_NUMBERS = (
    "median_s",
    "q1_s",
    "q3_s",
    "bytes_moved",
    "copy_bytes_per_s",
    "median_cycles",
)
_NAMES = ("run_id", "id", "facts_id", "status", "shared", "count", *_NUMBERS)
_COLUMNS = tuple(raw(getattr(ResultRow, name)) for name in _NAMES)


@collector_paused()  # until the rows are gone again: else it looks at each when they are read
def series(
    store: Store,
    case_key: str,
    gpu_model: str,
    *,
    environment_key: str | None = None,
    branch: str | None = None,
    dirty: bool = False,
    since: float | None = None,
    last: int | None = None,
) -> Series:
    """Return the results of a case (by fingerprint) on a GPU model, in commit order.

    Runs of dirty trees are left out unless asked for. `since` is in seconds since 1970; `last`
    keeps that many results at the end of the order. Empty, not an error, where nothing matches;
    NotFoundError for a case or GPU model that the store does not hold.
    """
    with store.reading("read a series") as connection:
        case, case_id, model_id = _identify(store, connection, case_key, gpu_model)
        runs = run_columns(store, connection, model_id)
        query = select(*_COLUMNS).where(ResultRow.case_id == case_id)
        if runs.of_many:
            on_model = select(RunRow.id).where(RunRow.gpu_model_id == model_id)
            query = query.where(ResultRow.run_id.in_(on_model))
        columns = read_columns(connection, query)
        code = _code_fingerprints(connection, columns[2])
    rows = runs.rows_of(np.array(columns[0], np.int64))
    wanted = rows >= 0
    if branch is not None:
        wanted &= runs.branch[rows] == branch
    if since is not None:
        wanted &= runs.started[rows] >= since
    if environment_key is not None:
        same = [n for n, e in runs.environments.items() if e.fingerprint == environment_key]
        wanted &= np.isin(runs.environment[rows], same)
    changed = np.zeros_like(wanted) if dirty else wanted & runs.dirty[rows]
    kept = np.flatnonzero(wanted & ~changed)
    kept = kept[_commit_order(runs, rows[kept])]
    older = 0 if last is None else max(0, kept.size - last)
    found = _columns(case, gpu_model, columns, kept[older:], runs, rows[kept[older:]], code)
    return replace(found, older=older, changed=int(changed.sum()))


def _identify(
    store: Store, connection: Connection, case_key: str, gpu_model: str
) -> tuple[Case, int, int]:
    row = connection.execute(
        select(CaseRow.__table__).where(CaseRow.fingerprint == case_key)
    ).first()
    if row is None:
        raise NotFoundError(f"cannot read the series of case {case_key!a}: {store.name} holds none")
    model = select(GpuModelRow.id).where(GpuModelRow.name == gpu_model)
    model_id = connection.execute(model).scalar()
    if model_id is None:
        raise NotFoundError(
            f"cannot read a series on {gpu_model!a}: {store.name} holds no such GPU model"
        )
    return case_of(row), row.id, model_id


def _commit_order(runs: RunColumns, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of rows of `runs` by place of the commit, then start, then run.

    A run outside a checkout has no place: it comes where its start falls among the others.
    """
    places, started = runs.place[rows], runs.started[rows]
    homeless = places < 0
    if homeless.any() and not homeless.all():
        order = np.lexsort((started[~homeless], places[~homeless]))
        # Starts need not rise with the order (backfills): the latest so far decides.
        latest = np.maximum.accumulate(started[~homeless][order])
        after = np.searchsorted(latest, started[homeless], side="right")
        seats = np.concatenate(([-1.0], places[~homeless][order]))
        places[homeless] = seats[after] + 0.5
    return np.lexsort((runs.number[rows], started, places)).astype(np.int64)


def _code_fingerprints(connection: Connection, facts: Sequence[int]) -> dict[int, str | None]:
    """Return the code's fingerprint by facts; few facts stand behind many results."""
    found: dict[int, str | None] = {}
    for chunk in chunks(set(facts)):
        query = select(FactsRow.id, FactsRow.code_fingerprint).where(FactsRow.id.in_(chunk))
        found |= {row.id: row.code_fingerprint for row in connection.execute(query)}
    return found


def _columns(
    case: Case,
    gpu_model: str,
    columns: Sequence[Sequence[Any]],
    kept: NDArray[np.int64],
    runs: RunColumns,
    rows: NDArray[np.int64],
    code: Mapping[int, str | None],
) -> Series:
    """Return the series of results `kept` (indices into the columns), of the runs `rows`."""
    _, ids, facts, status, shared, count = columns[:6]
    used, places = np.unique(runs.environment[rows], return_inverse=True)
    known = [runs.environments[int(number)] for number in used]
    return Series(
        case,
        gpu_model,
        tuple(known),
        tuple(environment.fingerprint for environment in known),
        number=runs.number[rows],
        result=np.array(ids, np.int64)[kept],
        run_id=runs.run_id[rows],
        sha=runs.sha[rows],
        branch=runs.branch[rows],
        started=runs.started[rows],
        dirty=runs.dirty[rows],
        complete=runs.complete[rows],
        environment=places.astype(np.int64),
        device=runs.device[rows],
        code_fingerprint=np.array([code[number] or "" for number in facts], np.str_)[kept],
        status=np.array(status, np.str_)[kept],
        shared=np.array(shared, np.bool_)[kept],
        count=np.array([number or 0 for number in count], np.int64)[kept],
        older=0,
        changed=0,
        # The rest of _COLUMNS, in its order; None becomes NaN.
        **{
            name: np.array(values, np.float64)[kept]
            for name, values in zip(_NUMBERS, columns[6:], strict=True)
        },
    )


def measurements(store: Store, result_ids: Sequence[int]) -> tuple[Floats, ...]:
    """Return the measurements in seconds of results by the store's ids; empty where thinned."""
    found: dict[int, bytes | None] = {}
    with store.reading("read measurements") as connection:
        for chunk in chunks(int(number) for number in result_ids):
            query = select(SampleRow.result_id, SampleRow.measurements)
            rows = connection.execute(query.where(SampleRow.result_id.in_(chunk)))
            found |= {row.result_id: row.measurements for row in rows}
    return tuple(unpack_all([found.get(int(number)) or b"" for number in result_ids]))
