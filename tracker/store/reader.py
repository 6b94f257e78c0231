"""Rows as the project's types again."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.engine import Connection

from tracker.model import Case, Checkout, Device, Environment, Result, Run
from tracker.record.parse import checkout_from, environment_from
from tracker.store.codec import unpack_all, unpack_readings
from tracker.store.parts import join
from tracker.store.prepare import THINNED, from_text
from tracker.store.rows import chunks
from tracker.store.schema import CaseRow, EnvironmentRow, FactsRow, ResultRow, RunRow, SampleRow

Facts = tuple[str | None, dict[str, Any]]
"""The fingerprint of a result's code, and what many results say alike."""


def case_of(row: Any) -> Case:
    """Return the case of a whole row of `cases`."""
    case = Case(
        kernel=row.kernel,
        implementation=row.implementation,
        dtype=row.dtype,
        shape=_shape(row.shape),
        alignment=row.alignment,
        cache=row.cache,
        parameters=dict(_parameters(row.parameters)),
        version=row.version,
    )
    case.known_by(row.fingerprint)
    return case


# A suite's cases share a few shapes and parameters.
@lru_cache(maxsize=1024)
def _shape(text: str) -> tuple[int, ...]:
    return tuple(from_text(text))


@lru_cache(maxsize=1024)
def _parameters(text: str) -> Mapping[str, Any]:
    found: dict[str, Any] = from_text(text)
    return found


def environments(connection: Connection, ids: Iterable[int]) -> dict[int, Environment]:
    """Return environments by the id of their row."""
    rows = connection.execute(
        select(EnvironmentRow.id, EnvironmentRow.body).where(EnvironmentRow.id.in_(set(ids)))
    )
    return {row.id: environment_from(from_text(row.body)) for row in rows}


def header_of(row: Any) -> tuple[Device, Checkout, Mapping[str, Any]]:
    """Return what a run's `detail` holds: device, checkout, and the rest by name."""
    detail = from_text(row.detail)
    return Device(**detail.pop("device")), checkout_from(detail.pop("checkout")), detail


def read_run(connection: Connection, run_id: int) -> Run:
    """Return the whole run of a row's id, its measurements included where they are kept."""
    row = connection.execute(select(RunRow.__table__).where(RunRow.id == run_id)).one()
    device, checkout, rest = header_of(row)
    return Run(
        run_id=row.run_id,
        started_at=row.started_at,
        finished_at=row.finished_at,
        environment=environments(connection, [row.environment_id])[row.environment_id],
        device=device,
        checkout=checkout,
        results=tuple(read_results(connection, [run_id])[run_id]),
        complete=row.complete,
        command=rest["command"],
        ci=rest["ci"],
        notes=tuple(rest["notes"]),
        demo=row.demo,
    )


def read_results(
    connection: Connection,
    run_ids: Sequence[int],
    *,
    case_ids: Sequence[int] | None = None,
    measurements: bool = True,
) -> dict[int, list[Result]]:
    """Return the results of a few runs by run, in the order of its record, of some cases or all."""
    wanted = [ResultRow.run_id.in_(run_ids)]
    if case_ids is not None:
        wanted.append(ResultRow.case_id.in_(case_ids))
    query = (
        select(ResultRow.__table__, SampleRow.detail)
        .join(SampleRow, SampleRow.result_id == ResultRow.id)
        .where(*wanted)
        .order_by(ResultRow.id)
    )
    if measurements:
        query = query.add_columns(SampleRow.measurements)
    found = connection.execute(query)
    names = tuple(found.keys())
    rows = [dict(zip(names, row, strict=True)) for row in found.all()]
    # By the same condition: a thousand ids take longer to put into a statement than to find again.
    cases = _cases(connection, CaseRow.id.in_(select(ResultRow.case_id).where(*wanted)))
    facts = _facts(connection, FactsRow.id.in_(select(ResultRow.facts_id).where(*wanted)))
    samples = unpack_all([row.get("measurements") or b"" for row in rows])
    results: dict[int, list[Result]] = {run_id: [] for run_id in run_ids}
    for row, sample in zip(rows, samples, strict=True):
        _, case = cases[row["case_id"]]
        result = _result(row, case, facts[row["facts_id"]], tuple(sample.tolist()))
        results[row["run_id"]].append(result)
    return results


def _result(
    row: Mapping[str, Any],
    case: Case,
    facts: Facts,
    sample: tuple[float, ...],
) -> Result:
    code_fingerprint, shared = facts
    if not sample and row["count"] is not None and "measurements" in row:
        reasons = {"measurements_s": THINNED, **shared.get("reasons", {})}
        shared = {**shared, "reasons": reasons}
    return join(case, row, shared, code_fingerprint, unpack_readings(row["detail"]), sample)


def cases_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, Case]:
    """Return cases by the id of their row."""
    return {number: case for number, (_, case) in keyed_cases(connection, ids).items()}


def keyed_cases(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[str, Case]]:
    """Return cases with the fingerprint that the store keeps of each, by the id of their row."""
    found: dict[int, tuple[str, Case]] = {}
    for chunk in chunks(ids):
        found |= _cases(connection, CaseRow.id.in_(chunk))
    return found


def facts_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, Facts]:
    """Return code fingerprints and shared facts by the id of their row."""
    found: dict[int, Facts] = {}
    for chunk in chunks(ids):
        found |= _facts(connection, FactsRow.id.in_(chunk))
    return found


def _cases(connection: Connection, condition: ColumnElement[bool]) -> dict[int, tuple[str, Case]]:
    rows = connection.execute(select(CaseRow.__table__).where(condition)).all()
    return {row.id: (row.fingerprint, case_of(row)) for row in rows}


def _facts(connection: Connection, condition: ColumnElement[bool]) -> dict[int, Facts]:
    columns = (FactsRow.id, FactsRow.code_fingerprint, FactsRow.body)
    rows = connection.execute(select(*columns).where(condition)).all()
    return {number: (code, from_text(body)) for number, code, body in rows}
