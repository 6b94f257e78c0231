"""Columns that say again, for queries, what a record says; and whether they say the same."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from tracker.model import Run, fingerprint
from tracker.store.parts import is_shared
from tracker.store.prepare import counted, epoch
from tracker.store.schema import (
    CaseRow,
    CommitParentRow,
    CommitRow,
    DeviceRow,
    EnvironmentRow,
    GpuModelRow,
    ResultRow,
    RunRow,
    SeriesRow,
)


def differing(connection: Connection, number: int, run: Run) -> Iterator[str]:
    """Yield what the columns of a run and of its results say other than the run that was read."""
    told, held = _told(run), _held(connection, number)
    yield from (name for name, value in told.items() if held[name] != value)
    commit = run.checkout.commit
    if commit is not None and commit.parents:
        # A commit's id says which these are: no two records can tell others.
        if _parents(connection, commit.sha) != commit.parents:
            yield "parents"
        if commit.commit_time and held["committed"] != epoch(commit.commit_time):
            yield "committed"
    query = (
        select(ResultRow.shared, CaseRow.fingerprint, CaseRow.label)
        .join(CaseRow, CaseRow.id == ResultRow.case_id)
        .where(ResultRow.run_id == number)
        .order_by(ResultRow.id)
    )
    rows = connection.execute(query).all()
    for row, result in zip(rows, run.results, strict=True):
        names = ("shared", "fingerprint", "label")
        # Not the case's own, which it has from this very column.
        key = fingerprint(result.case.identity())
        expected = (is_shared(result), key, result.case.label)
        for name, found, value in zip(names, row, expected, strict=True):
            if found != value:
                yield f"{name} of {result.case.label[:200]}"


def _told(run: Run) -> dict[str, Any]:
    commit = run.checkout.commit
    return {
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "started": epoch(run.started_at),
        "statuses": counted(result.status.value for result in run.results),
        "commit": commit.sha if commit else None,
        "backend": run.environment.backend,
        "gpu_model": run.environment.gpu_model,
        "device": run.device.uuid,
        "environment": run.environment.fingerprint,
    }


def _held(connection: Connection, number: int) -> dict[str, Any]:
    query = (
        select(
            *(RunRow.branch, RunRow.dirty, RunRow.started, RunRow.statuses),
            *(CommitRow.sha.label("commit"), CommitRow.committed),
            GpuModelRow.backend,
            GpuModelRow.name.label("gpu_model"),
            DeviceRow.uuid.label("device"),
            EnvironmentRow.fingerprint.label("environment"),
        )
        .select_from(RunRow)
        .outerjoin(CommitRow, CommitRow.id == RunRow.commit_id)
        .join(GpuModelRow, GpuModelRow.id == RunRow.gpu_model_id)
        .join(DeviceRow, DeviceRow.id == RunRow.device_id)
        .join(EnvironmentRow, EnvironmentRow.id == RunRow.environment_id)
        .where(RunRow.id == number)
    )
    return dict(connection.execute(query).mappings().one())


def _parents(connection: Connection, sha: str) -> tuple[str, ...]:
    child = select(CommitRow.id).where(CommitRow.sha == sha).scalar_subquery()
    query = (
        select(CommitRow.sha)
        .join(CommitParentRow, CommitParentRow.parent_id == CommitRow.id)
        .where(CommitParentRow.commit_id == child)
        .order_by(CommitParentRow.position)
    )
    return tuple(connection.execute(query).scalars())


def check_series(connection: Connection) -> Iterator[str]:
    """Yield a sentence for each series that counts other results than there are, or other times."""
    keys = (ResultRow.case_id, RunRow.gpu_model_id, EnvironmentRow.fingerprint)
    counted_now = (
        select(*keys, func.count(), func.min(RunRow.started), func.max(RunRow.started))
        .join(RunRow, RunRow.id == ResultRow.run_id)
        .join(EnvironmentRow, EnvironmentRow.id == RunRow.environment_id)
        .group_by(*keys)
    )
    rows = connection.execute(counted_now)
    there: dict[tuple[Any, ...], tuple[Any, ...]] = {tuple(row[:3]): tuple(row[3:]) for row in rows}
    series = SeriesRow.__table__.c
    for row in connection.execute(select(*series).order_by(series.id)):
        key = (row.case_id, row.gpu_model_id, row.fingerprint)
        told = (row.results, row.first_started, row.last_started)
        found = there.pop(key, (0, None, None))
        if found != told:
            yield f"series {row.id} says {told} of its results and times; expected {found}"
    for key in there:
        yield f"results of case {key[0]} on GPU model {key[1]} in {key[2]} have no series"
