"""Series: which there are, and one of them as columns in commit order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.engine import Connection

from tracker.errors import NotFoundError
from tracker.model import Case, Environment
from tracker.queries.order import Graph, graph
from tracker.store import Store
from tracker.store.codec import unpack
from tracker.store.reader import case_of, environments
from tracker.store.rows import chunks
from tracker.store.schema import (
    CaseRow,
    EnvironmentRow,
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
    store's id of a run, `result` that of a result, for `measurements`.
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
    mean_s: Floats
    min_s: Floats
    max_s: Floats
    q1_s: Floats
    q3_s: Floats
    stddev_s: Floats
    bytes_moved: Floats
    copy_bytes_per_s: Floats
    median_cycles: Floats

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


_RUN = (RunRow.id, RunRow.run_id, RunRow.commit_id, RunRow.branch, RunRow.started, RunRow.dirty)
_NUMBERS = (
    "median_s",
    "mean_s",
    "min_s",
    "max_s",
    "q1_s",
    "q3_s",
    "stddev_s",
    "bytes_moved",
    "copy_bytes_per_s",
    "median_cycles",
)
_COLUMNS = (
    *_RUN,
    RunRow.complete,
    RunRow.environment_id,
    RunRow.device_id,
    ResultRow.facts_id,
    ResultRow.id,
    ResultRow.status,
    ResultRow.shared,
    ResultRow.count,
    *(getattr(ResultRow, name) for name in _NUMBERS),
)


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
        query = (
            select(*_COLUMNS)
            .join(RunRow, RunRow.id == ResultRow.run_id)
            .where(ResultRow.case_id == case_id, RunRow.gpu_model_id == model_id)
        )
        if not dirty:
            query = query.where(RunRow.dirty.is_(False))
        if branch is not None:
            query = query.where(RunRow.branch == branch)
        if since is not None:
            query = query.where(RunRow.started >= since)
        if environment_key is not None:
            same = select(EnvironmentRow.id).where(EnvironmentRow.fingerprint == environment_key)
            query = query.where(RunRow.environment_id.in_(same))
        rows = connection.execute(query).all()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_COLUMNS)
        code = _code_fingerprints(connection, columns)
        commits = graph(store, connection)
        kept = _in_commit_order(columns, commits)
        kept = kept if last is None else kept[max(0, kept.size - last) :]
        known = environments(connection, set(columns[7]))
    return _columns(case, gpu_model, columns, kept, commits, known, code)


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


def _in_commit_order(columns: Sequence[Sequence[Any]], commits: Graph) -> NDArray[np.int64]:
    """Return the rows' indices by place of the commit, then start, then run.

    A run outside a checkout has no place: it comes where its start falls among the others.
    """
    numbers, _, commit_ids, _, starts, _ = columns[: len(_RUN)]
    places = np.array([commits.places.get(c, -1) for c in commit_ids], dtype=np.float64)
    started = np.array(starts, dtype=np.float64)
    homeless = places < 0
    if homeless.any() and not homeless.all():
        order = np.lexsort((started[~homeless], places[~homeless]))
        # Starts need not rise with the order (backfills): the latest so far decides.
        latest = np.maximum.accumulate(started[~homeless][order])
        after = np.searchsorted(latest, started[homeless], side="right")
        seats = np.concatenate(([-1.0], places[~homeless][order]))
        places[homeless] = seats[after] + 0.5
    return np.lexsort((np.array(numbers, dtype=np.int64), started, places)).astype(np.int64)


def _code_fingerprints(
    connection: Connection, columns: Sequence[Sequence[Any]]
) -> dict[int, str | None]:
    """Return the code's fingerprint by facts; few facts stand behind many results."""
    found: dict[int, str | None] = {}
    for chunk in chunks(set(columns[9])):
        query = select(FactsRow.id, FactsRow.code_fingerprint).where(FactsRow.id.in_(chunk))
        found |= {row.id: row.code_fingerprint for row in connection.execute(query)}
    return found


def _columns(
    case: Case,
    gpu_model: str,
    columns: Sequence[Sequence[Any]],
    kept: NDArray[np.int64],
    commits: Graph,
    known: dict[int, Environment],
    code: dict[int, str | None],
) -> Series:
    numbers, run_ids, commit_ids, branches, starts, dirty = columns[: len(_RUN)]
    complete, environment_ids, devices, facts, result_ids, status, shared, count = columns[6:14]
    index = {number: place for place, number in enumerate(known)}

    def text(values: Sequence[str | None]) -> NDArray[np.str_]:
        return np.array([value or "" for value in values], dtype=np.str_)[kept]

    def whole(values: Sequence[int | None]) -> NDArray[np.int64]:
        return np.array([value or 0 for value in values], dtype=np.int64)[kept]

    def flag(values: Sequence[bool]) -> NDArray[np.bool_]:
        return np.array(values, dtype=np.bool_)[kept]

    def real(values: Sequence[float | None]) -> Floats:
        return np.array(values, dtype=np.float64)[kept]

    return Series(
        case,
        gpu_model,
        tuple(known.values()),
        tuple(environment.fingerprint for environment in known.values()),
        number=whole(numbers),
        result=whole(result_ids),
        run_id=text(run_ids),
        sha=text([commits.shas.get(number) for number in commit_ids]),
        branch=text(branches),
        started=real(starts),
        dirty=flag(dirty),
        complete=flag(complete),
        environment=whole([index[number] for number in environment_ids]),
        device=whole(devices),
        code_fingerprint=text([code[number] for number in facts]),
        status=text(status),
        shared=flag(shared),
        count=whole(count),
        # The rest of _COLUMNS, in its order.
        **dict(zip(_NUMBERS, map(real, columns[14:]), strict=True)),
    )


def measurements(store: Store, result_ids: Sequence[int]) -> tuple[Floats, ...]:
    """Return the measurements in seconds of results by the store's ids; empty where thinned."""
    found: dict[int, bytes | None] = {}
    with store.reading("read measurements") as connection:
        for chunk in chunks(int(number) for number in result_ids):
            query = select(SampleRow.result_id, SampleRow.measurements)
            rows = connection.execute(query.where(SampleRow.result_id.in_(chunk)))
            found |= {row.result_id: row.measurements for row in rows}
    return tuple(unpack(found.get(int(number)) or b"") for number in result_ids)
