"""Runs: lists, the GPU models that have some, and one by what a person calls it."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.engine import Connection

from tracker.errors import NotFoundError
from tracker.model import Run
from tracker.queries.info import ModelInfo, Overview, RunInfo
from tracker.store import Store
from tracker.store.prepare import from_text
from tracker.store.reader import environments, header_of, read_run
from tracker.store.rows import chunks
from tracker.store.schema import (
    CaseRow,
    CommitRow,
    DeviceRow,
    EnvironmentRow,
    GpuModelRow,
    Meta,
    RunRow,
    SeriesRow,
)

_SHORTEST_SHA = 4
_HEX = frozenset("0123456789abcdef")


def revision(store: Store) -> int:
    """Return the counter that every write bumps: what caches key on."""
    return store.revision()


def overview(store: Store) -> Overview:
    """Return how much the store holds, and its GPU models, the most recently measured first."""
    with store.reading("read the overview") as connection:
        return Overview(
            revision=connection.execute(select(Meta.revision)).scalar_one(),
            runs=_count(connection, RunRow.id),
            results=connection.execute(
                select(func.coalesce(func.sum(RunRow.results), 0))
            ).scalar_one(),
            cases=_count(connection, CaseRow.id),
            series=_count(connection, SeriesRow.id),
            commits=connection.execute(
                select(func.count(func.distinct(RunRow.commit_id)))
            ).scalar_one(),
            models=_models(connection),
        )


def _count(connection: Connection, column: Any, *conditions: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count(column)).where(*conditions)).scalar_one())


def gpu_models(store: Store) -> tuple[ModelInfo, ...]:
    """Return the GPU models that have runs, the most recently measured first."""
    with store.reading("list GPU models") as connection:
        return _models(connection)


def _models(connection: Connection) -> tuple[ModelInfo, ...]:
    counted = select(RunRow.gpu_model_id, func.count()).group_by(RunRow.gpu_model_id)
    counts = {row[0]: row[1] for row in connection.execute(counted)}
    devices: dict[int, list[str]] = {}
    for row in connection.execute(
        select(DeviceRow.gpu_model_id, DeviceRow.uuid).order_by(DeviceRow.id)
    ):
        devices.setdefault(row.gpu_model_id, []).append(row.uuid)
    found = []
    for model in connection.execute(select(GpuModelRow.__table__)).all():
        newest = connection.execute(_newest(RunRow.gpu_model_id == model.id)).first()
        if newest is not None:
            info = ModelInfo(
                backend=model.backend,
                name=model.name,
                devices=tuple(devices.get(model.id, ())),
                runs=counts[model.id],
                newest_run_id=newest.run_id,
                newest_started_at=newest.started_at,
            )
            found.append((newest.started, info))
    return tuple(info for _, info in sorted(found, key=lambda pair: -pair[0]))


def _newest(*conditions: ColumnElement[bool]) -> Any:
    query = select(RunRow.__table__).where(*conditions)
    return query.order_by(RunRow.started.desc(), RunRow.id.desc()).limit(1)


def branches(store: Store, gpu_model: str | None = None) -> tuple[str, ...]:
    """Return the branches that clean runs were made on, in alphabetical order."""
    query = (
        select(RunRow.branch).where(RunRow.branch.is_not(None), RunRow.dirty.is_(False)).distinct()
    )
    if gpu_model is not None:
        query = query.where(_on_model(gpu_model))
    with store.reading("list branches") as connection:
        return tuple(sorted(str(name) for name in connection.execute(query).scalars()))


def _on_model(name: str) -> ColumnElement[bool]:
    return RunRow.gpu_model_id.in_(select(GpuModelRow.id).where(GpuModelRow.name == name))


def runs(
    store: Store,
    *,
    gpu_model: str | None = None,
    branch: str | None = None,
    sha: str | None = None,
    environment_key: str | None = None,
    device: str | None = None,
    dirty: bool | None = None,
    complete: bool | None = None,
    since: float | None = None,
    before: float | None = None,
    limit: int | None = 50,
    offset: int = 0,
) -> tuple[RunInfo, ...]:
    """Return the runs that match everything given, newest first.

    `sha` is a whole commit id, `device` a UUID; `since` (included) and `before` (excluded) are
    seconds since 1970 of the run's start.
    """
    conditions: list[ColumnElement[bool]] = []
    if gpu_model is not None:
        conditions.append(_on_model(gpu_model))
    if sha is not None:
        conditions.append(RunRow.commit_id.in_(select(CommitRow.id).where(CommitRow.sha == sha)))
    if environment_key is not None:
        same = select(EnvironmentRow.id).where(EnvironmentRow.fingerprint == environment_key)
        conditions.append(RunRow.environment_id.in_(same))
    if device is not None:
        conditions.append(
            RunRow.device_id.in_(select(DeviceRow.id).where(DeviceRow.uuid == device))
        )
    conditions += [
        column == value
        for column, value in (
            (RunRow.branch, branch),
            (RunRow.dirty, dirty),
            (RunRow.complete, complete),
        )
        if value is not None
    ]
    if since is not None:
        conditions.append(RunRow.started >= since)
    if before is not None:
        conditions.append(RunRow.started < before)
    query = select(RunRow.__table__).where(*conditions)
    query = query.order_by(RunRow.started.desc(), RunRow.id.desc()).limit(limit).offset(offset)
    with store.reading("list runs") as connection:
        return run_infos(connection, connection.execute(query).all())


def count_runs(store: Store, *, gpu_model: str | None = None, branch: str | None = None) -> int:
    """Return how many runs match everything given."""
    conditions = [] if gpu_model is None else [_on_model(gpu_model)]
    if branch is not None:
        conditions.append(RunRow.branch == branch)
    with store.reading("count runs") as connection:
        return _count(connection, RunRow.id, *conditions)


def runs_by_number(store: Store, numbers: Iterable[int]) -> dict[int, RunInfo]:
    """Return runs by the store's own ids, those that there are."""
    found: dict[int, RunInfo] = {}
    with store.reading("read runs") as connection:
        for chunk in chunks(tuple(numbers)):
            query = select(RunRow.__table__).where(RunRow.id.in_(chunk))
            rows = run_infos(connection, connection.execute(query).all())
            found |= {run.number: run for run in rows}
    return found


def find_run(store: Store, reference: str, *, gpu_model: str | None = None) -> RunInfo:
    """Return the run that a person means: `latest`, a run id or its beginning, or a commit's.

    For a commit (at least 4 digits) it is the newest run of it. Whatever these were for: where a
    person names no run id, `tracker.occasion` looks for the newest of the suite. Raises
    NotFoundError for none, and for a beginning that several runs or commits share.
    """
    model = [] if gpu_model is None else [_on_model(gpu_model)]
    with store.reading("find a run") as connection:
        row = (
            connection.execute(_newest(*model)).first()
            if reference == "latest"
            else _by_run_id(connection, reference, model) or _by_sha(connection, reference, model)
        )
        if row is None:
            where = f" on {gpu_model}" if gpu_model else ""
            raise NotFoundError(
                f"cannot find run {reference!a}{where} in {store.name}: no run id and no commit "
                "begins like that; `bandwatch list` shows what there is"
            )
        return run_infos(connection, [row])[0]


def _begins(column: Any, text: str) -> ColumnElement[bool]:
    # Not LIKE, which ignores case on one engine; not a range, whose order depends on the locale.
    return func.substr(column, 1, len(text)) == text


def _by_run_id(connection: Connection, reference: str, model: Sequence[ColumnElement[bool]]) -> Any:
    if not reference.isascii() or not reference:
        return None
    exact = connection.execute(select(RunRow.__table__).where(RunRow.run_id == reference)).first()
    if exact is not None:
        return exact
    rows = connection.execute(
        select(RunRow.__table__).where(_begins(RunRow.run_id, reference), *model).limit(2)
    ).all()
    if len(rows) > 1:
        raise NotFoundError(
            f"cannot find run {reference}: several run ids begin like that; give more of it"
        )
    return rows[0] if rows else None


def _by_sha(connection: Connection, reference: str, model: Sequence[ColumnElement[bool]]) -> Any:
    sha = reference.lower()
    if len(sha) < _SHORTEST_SHA or not set(sha) <= _HEX:
        return None
    measured = select(CommitRow.id).where(
        _begins(CommitRow.sha, sha), CommitRow.id.in_(select(RunRow.commit_id).where(*model))
    )
    found = connection.execute(measured.limit(2)).scalars().all()
    if len(found) > 1:
        raise NotFoundError(
            f"cannot find run {reference}: several commits begin like that; give more of it"
        )
    if not found:
        return None
    return connection.execute(_newest(RunRow.commit_id == found[0], *model)).first()


def load_run(store: Store, run_id: str) -> Run:
    """Return a whole run as it was recorded. Raises NotFoundError for an unknown id."""
    with store.reading(f"read run {run_id}") as connection:
        number = connection.execute(select(RunRow.id).where(RunRow.run_id == run_id)).scalar()
        if number is None:
            raise NotFoundError(f"cannot read run {run_id!a}: {store.name} holds no run of this id")
        return read_run(connection, number)


def run_infos(connection: Connection, rows: Iterable[Any]) -> tuple[RunInfo, ...]:
    """Return rows of `runs` as RunInfo, in their order."""
    rows = list(rows)
    known = environments(connection, (row.environment_id for row in rows))
    keys = {number: environment.fingerprint for number, environment in known.items()}
    found = []
    for row in rows:
        device, checkout, rest = header_of(row)
        found.append(
            RunInfo(
                number=row.id,
                run_id=row.run_id,
                started_at=row.started_at,
                started=row.started,
                finished_at=row.finished_at,
                recorded_at=row.recorded_at,
                environment=known[row.environment_id],
                environment_key=keys[row.environment_id],
                device=device,
                checkout=checkout,
                complete=row.complete,
                demo=row.demo,
                command=rest["command"],
                ci=rest["ci"],
                notes=tuple(rest["notes"]),
                results=row.results,
                statuses=from_text(row.statuses),
                thinned=row.thinned_at is not None,
            )
        )
    return tuple(found)
