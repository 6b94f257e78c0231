"""Runs that a new one may be judged against; tracker.baseline picks among them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.engine import Connection

from tracker.queries.info import RunInfo
from tracker.queries.order import ancestors as known_ancestors
from tracker.queries.runs import run_infos
from tracker.store import Store
from tracker.store.rows import chunks
from tracker.store.schema import CommitRow, EnvironmentRow, GpuModelRow, RunRow

_NEWEST = (RunRow.started.desc(), RunRow.id.desc())


def candidates(
    store: Store,
    head: RunInfo,
    *,
    ancestors: Sequence[str] | None = None,
    limit: int = 50,
    any_environment: bool = False,
) -> tuple[RunInfo, ...]:
    """Return clean earlier runs for a baseline of `head` and its history, the best first.

    These are runs on the same GPU model in a comparable environment (`any_environment`: in any) of
    an ancestor commit, nearest first and newest first within a commit, then earlier runs of head's
    own commit (outside a checkout: earlier runs outside one), newest first. `ancestors` are commit
    ids, newest first, from git; without them the store's own graph answers. A demo run only meets
    demo runs.
    """
    shas = known_ancestors(store, head.sha) if ancestors is None and head.sha else ancestors or ()
    conditions = _comparable(head, any_environment=any_environment)
    with store.reading("read baseline candidates") as connection:
        found = _of_ancestors(connection, shas, conditions, limit)
        rest = select(RunRow.__table__).where(*conditions, *_before(head)).order_by(*_NEWEST)
        found += connection.execute(rest.limit(limit - len(found))).all()
        return run_infos(connection, found)


def _comparable(head: RunInfo, *, any_environment: bool) -> list[ColumnElement[bool]]:
    on_model = select(GpuModelRow.id).where(
        GpuModelRow.name == head.gpu_model, GpuModelRow.backend == head.environment.backend
    )
    conditions = [
        # Plus nothing, so that no engine goes by this: every run may be of this model, while those
        # of the commits asked for are few.
        (RunRow.gpu_model_id + 0).in_(on_model),
        RunRow.id != head.number,
        RunRow.dirty.is_(False),
        RunRow.demo == head.demo,
    ]
    if not any_environment:
        same = select(EnvironmentRow.id).where(EnvironmentRow.fingerprint == head.environment_key)
        conditions.append(RunRow.environment_id.in_(same))
    return conditions


def _of_ancestors(
    connection: Connection,
    shas: Sequence[str],
    conditions: Sequence[ColumnElement[bool]],
    limit: int,
) -> list[Any]:
    distance = {sha: place for place, sha in enumerate(shas)}
    found: list[Any] = []
    # Most lines have enough runs among their nearest commits.
    near, far = shas[: 2 * limit], shas[2 * limit :]
    for chunk in chain([near], chunks(far)):
        wanted = select(CommitRow.id, CommitRow.sha).where(CommitRow.sha.in_(chunk))
        known = {row.id: row.sha for row in connection.execute(wanted)}
        of_these = select(RunRow.__table__).where(*conditions, RunRow.commit_id.in_(known))
        # Put in order here: asked for it, SQLite would walk through every run by its start.
        rows = connection.execute(of_these).all()
        found += sorted(
            rows, key=lambda row: (distance[known[row.commit_id]], -row.started, -row.id)
        )
        if len(found) >= limit:
            break
    return found[:limit]


def _before(head: RunInfo) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions on earlier runs of head's own commit, or without one like head."""
    own: ColumnElement[bool] = RunRow.commit_id.is_(None)
    if head.sha is not None:
        own = RunRow.commit_id.in_(select(CommitRow.id).where(CommitRow.sha == head.sha))
    at_once = (RunRow.started == head.started) & (RunRow.id < head.number)
    return own, or_(RunRow.started < head.started, at_once)
