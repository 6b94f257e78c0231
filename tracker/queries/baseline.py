"""Runs that a new one may be judged against; tracker.baseline picks among them."""

from collections.abc import Sequence

from sqlalchemy import or_, select

from tracker.queries.info import RunInfo
from tracker.queries.order import ancestors as known_ancestors
from tracker.queries.runs import run_infos
from tracker.store import Store
from tracker.store.rows import chunks
from tracker.store.schema import CommitRow, EnvironmentRow, GpuModelRow, RunRow


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
    distance = {sha: place for place, sha in enumerate(shas)}
    conditions = [
        RunRow.gpu_model_id.in_(
            select(GpuModelRow.id).where(
                GpuModelRow.name == head.gpu_model, GpuModelRow.backend == head.environment.backend
            )
        ),
        RunRow.id != head.number,
        RunRow.dirty.is_(False),
        RunRow.demo == head.demo,
    ]
    if not any_environment:
        same = select(EnvironmentRow.id).where(EnvironmentRow.fingerprint == head.environment_key)
        conditions.append(RunRow.environment_id.in_(same))
    earlier = or_(
        RunRow.started < head.started, (RunRow.started == head.started) & (RunRow.id < head.number)
    )
    own = RunRow.commit_id.is_(None)
    if head.sha is not None:
        own = RunRow.commit_id.in_(select(CommitRow.id).where(CommitRow.sha == head.sha))
    newest = (RunRow.started.desc(), RunRow.id.desc())
    with store.reading("read baseline candidates") as connection:
        found = []
        for chunk in chunks(distance):
            wanted = select(CommitRow.id, CommitRow.sha).where(CommitRow.sha.in_(chunk))
            known = {row.id: row.sha for row in connection.execute(wanted)}
            rows = connection.execute(
                select(RunRow.__table__)
                .where(*conditions, RunRow.commit_id.in_(known))
                .order_by(*newest)
            ).all()
            found += sorted(rows, key=lambda row: distance[known[row.commit_id]])
            if len(found) >= limit:
                break
        rest = select(RunRow.__table__).where(*conditions, own, earlier).order_by(*newest)
        found = found[:limit]
        found += connection.execute(rest.limit(limit - len(found))).all()
        return run_infos(connection, found)
