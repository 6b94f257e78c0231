"""One run into the tables, inside the transaction of the caller, who holds the write lock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case as when
from sqlalchemy import insert, select, update
from sqlalchemy.engine import Connection

from tracker.model import Case, Commit
from tracker.record.dump import canonical
from tracker.store.commits import learn_commits
from tracker.store.prepare import Prepared
from tracker.store.rows import chunks, id_of, ids_by_key, insert_all, next_id, now
from tracker.store.schema import (
    CaseRow,
    DeviceRow,
    EnvironmentRow,
    FactsRow,
    GpuModelRow,
    ResultRow,
    RunRow,
    SampleRow,
    SeriesRow,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a store says of a run besides its content; None for `recorded_at` means now."""

    revision: int
    recorded_at: str | None = None
    thinned_at: str | None = None


def write_run(connection: Connection, prepared: Prepared, stored: Stored) -> int:
    """Insert a run that the store does not hold, and return its row's id."""
    model = prepared.run.environment
    model_id = id_of(connection, GpuModelRow, backend=model.backend, name=model.gpu_model)
    run_id = next_id(connection, RunRow)
    ids = {
        "id": run_id,
        "gpu_model_id": model_id,
        "environment_id": _environment(connection, prepared, model_id),
        "device_id": _device(connection, prepared, model_id),
        "commit_id": _commit(connection, prepared.run.checkout.commit),
    }
    connection.execute(insert(RunRow), {**ids, **_columns(prepared, stored)})
    _write_results(connection, prepared, run_id, model_id)
    return run_id


def _columns(prepared: Prepared, stored: Stored) -> dict[str, Any]:
    run = prepared.run
    return {
        "run_id": run.run_id,
        "digest": prepared.digest,
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "complete": run.complete,
        "demo": run.demo,
        "started_at": run.started_at,
        "started": prepared.started,
        "finished_at": run.finished_at,
        "recorded_at": stored.recorded_at or now(),
        "revision": stored.revision,
        "results": len(prepared.results),
        "statuses": prepared.statuses,
        "thinned_at": stored.thinned_at,
        "detail": prepared.detail,
    }


def _device(connection: Connection, prepared: Prepared, model_id: int) -> int:
    device = prepared.run.device
    found = connection.execute(
        select(DeviceRow.id).where(
            DeviceRow.gpu_model_id == model_id, DeviceRow.uuid == device.uuid
        )
    ).scalar()
    if found is not None:
        return found
    return id_of(connection, DeviceRow, gpu_model_id=model_id, uuid=device.uuid, name=device.name)


def _environment(connection: Connection, prepared: Prepared, model_id: int) -> int:
    key = prepared.environment_digest
    found = connection.execute(
        select(EnvironmentRow.id).where(EnvironmentRow.digest == key)
    ).scalar()
    if found is not None:
        return found
    return id_of(
        connection,
        EnvironmentRow,
        digest=key,
        fingerprint=prepared.run.environment.fingerprint,
        gpu_model_id=model_id,
        body=prepared.environment,
    )


def _commit(connection: Connection, commit: Commit | None) -> int | None:
    if commit is None:
        return None
    return learn_commits(connection, [commit])[commit.sha]


def _write_results(connection: Connection, prepared: Prepared, run_id: int, model_id: int) -> None:
    cases = _cases(connection, {r.fingerprint: r.case for r in prepared.results})
    facts = _facts(connection, prepared.facts)
    start = next_id(connection, ResultRow)
    numbered = list(enumerate(prepared.results, start=start))
    insert_all(
        connection,
        ResultRow,
        [
            {
                "id": number,
                "run_id": run_id,
                "case_id": cases[result.fingerprint],
                "facts_id": facts[result.facts_key],
                **result.columns,
            }
            for number, result in numbered
        ],
    )
    insert_all(
        connection,
        SampleRow,
        [
            {"result_id": number, "measurements": result.measurements, "detail": result.readings}
            for number, result in numbered
        ],
    )
    _count_series(connection, prepared, cases.values(), model_id)


def _cases(connection: Connection, cases: Mapping[str, Case]) -> dict[str, int]:
    ids = ids_by_key(connection, CaseRow, "fingerprint", cases)
    start = next_id(connection, CaseRow)
    fresh = [key for key in cases if key not in ids]
    ids |= {key: start + offset for offset, key in enumerate(fresh)}
    insert_all(connection, CaseRow, [_case_values(ids[key], key, cases[key]) for key in fresh])
    # In the record's order, whatever order the database answered in: series get their ids by it.
    return {key: ids[key] for key in cases}


def _case_values(case_id: int, key: str, case: Case) -> dict[str, Any]:
    return {
        "id": case_id,
        "fingerprint": key,
        "kernel": case.kernel,
        "implementation": case.implementation,
        "dtype": case.dtype,
        "shape": canonical(list(case.shape)).decode(),
        "alignment": case.alignment,
        "cache": case.cache,
        "parameters": canonical(dict(case.parameters)).decode(),
        "version": case.version,
        "label": case.label,
    }


def _facts(connection: Connection, facts: Mapping[str, tuple[str | None, str]]) -> dict[str, int]:
    ids = ids_by_key(connection, FactsRow, "digest", facts)
    start = next_id(connection, FactsRow)
    fresh = [key for key in facts if key not in ids]
    ids |= {key: start + offset for offset, key in enumerate(fresh)}
    rows = [
        {"id": ids[key], "digest": key, "code_fingerprint": facts[key][0], "body": facts[key][1]}
        for key in fresh
    ]
    insert_all(connection, FactsRow, rows)
    return ids


def _count_series(
    connection: Connection, prepared: Prepared, case_ids: Iterable[int], model_id: int
) -> None:
    fingerprint, started = prepared.run.environment.fingerprint, prepared.started
    same = (SeriesRow.gpu_model_id == model_id, SeriesRow.fingerprint == fingerprint)
    held: dict[int, int] = {}
    wanted = list(case_ids)
    for chunk in chunks(wanted):
        rows = connection.execute(
            select(SeriesRow.case_id, SeriesRow.id).where(*same, SeriesRow.case_id.in_(chunk))
        )
        held |= {row.case_id: row.id for row in rows}
    for chunk in chunks(list(held.values())):
        last, first = SeriesRow.last_started, SeriesRow.first_started
        connection.execute(
            update(SeriesRow)
            .where(SeriesRow.id.in_(chunk))
            .values(
                results=SeriesRow.results + 1,
                # Plain comparisons: MIN and GREATEST are called differently by the two engines.
                first_started=when((first > started, started), else_=first),
                last_started=when((last < started, started), else_=last),
            )
        )
    start = next_id(connection, SeriesRow)
    fresh = [case_id for case_id in wanted if case_id not in held]
    insert_all(
        connection,
        SeriesRow,
        [
            {
                "id": start + offset,
                "case_id": case_id,
                "gpu_model_id": model_id,
                "fingerprint": fingerprint,
                "results": 1,
                "first_started": started,
                "last_started": started,
            }
            for offset, case_id in enumerate(fresh)
        ],
    )
