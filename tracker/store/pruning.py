"""Old measurements thinned out by a stated rule; runs, results and summaries stay for good."""

from dataclasses import dataclass
from math import isfinite

from sqlalchemy import func, select, update
from sqlalchemy.engine import Connection

from tracker.errors import StoreError
from tracker.store.rows import chunks, now
from tracker.store.schema import ResultRow, RunRow, SampleRow
from tracker.store.store import Store

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a rule covers: runs whose measurements go, how many samples those are, their bytes."""

    runs: int
    samples: int
    bytes: int


def prune(
    store: Store, *, now_s: float, older_than_days: float, keep_runs: int, apply: bool
) -> Pruned:
    """Drop the measurements of runs that are old and not among the newest of their GPU model.

    A run is covered when it started more than `older_than_days` before `now_s` (seconds since
    1970) and at least `keep_runs` runs of its GPU model are newer. Without `apply` nothing is
    changed, and what is returned is what would be.
    """
    # Not a number is above every number to one engine: every run would be old.
    if not isfinite(older_than_days) or older_than_days < 0 or keep_runs < 0:
        raise StoreError(
            f"cannot prune: {older_than_days} days and {keep_runs} runs given; expected 0 or more"
        )
    before = now_s - older_than_days * _DAY_S
    if not apply:
        with store.reading("look for old measurements") as connection:
            return _count(connection, _covered(connection, before, keep_runs))
    with store.writing("prune measurements") as (connection, _):
        runs = _covered(connection, before, keep_runs)
        found = _count(connection, runs)
        for chunk in chunks(runs):
            results = select(ResultRow.id).where(ResultRow.run_id.in_(chunk))
            connection.execute(
                update(SampleRow).where(SampleRow.result_id.in_(results)).values(measurements=None)
            )
            connection.execute(update(RunRow).where(RunRow.id.in_(chunk)).values(thinned_at=now()))
    return found


def _covered(connection: Connection, before: float, keep_runs: int) -> list[int]:
    newer = (
        func.row_number()
        .over(partition_by=RunRow.gpu_model_id, order_by=(RunRow.started.desc(), RunRow.id.desc()))
        .label("newer")
    )
    ranked = select(RunRow.id, RunRow.started, RunRow.thinned_at, newer).subquery()
    query = select(ranked.c.id).where(
        ranked.c.newer > keep_runs, ranked.c.started < before, ranked.c.thinned_at.is_(None)
    )
    return list(connection.execute(query.order_by(ranked.c.id)).scalars())


def _count(connection: Connection, runs: list[int]) -> Pruned:
    samples, size, kept = 0, 0, SampleRow.measurements
    for chunk in chunks(runs):
        query = (
            select(func.count(kept), func.sum(func.length(kept)))
            .join(ResultRow, ResultRow.id == SampleRow.result_id)
            .where(ResultRow.run_id.in_(chunk))
        )
        row = connection.execute(query).one()
        samples += row[0]
        size += row[1] or 0
    return Pruned(len(runs), samples, size)
