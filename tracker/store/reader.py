"""Rows as the project's types again."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.engine import Connection

from tracker.model import Case, Checkout, Device, Environment, Result, Run
from tracker.record.parse import checkout_from, environment_from
from tracker.store.codec import unpack, unpack_readings
from tracker.store.parts import join
from tracker.store.prepare import THINNED, from_text
from tracker.store.rows import chunks
from tracker.store.schema import CaseRow, EnvironmentRow, FactsRow, ResultRow, RunRow, SampleRow


def case_of(row: Any) -> Case:
    """Return the case of a row of `cases`."""
    return Case(
        kernel=row.kernel,
        implementation=row.implementation,
        dtype=row.dtype,
        shape=_shape(row.shape),
        alignment=row.alignment,
        cache=row.cache,
        parameters=dict(_parameters(row.parameters)),
        version=row.version,
    )


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
        results=tuple(read_results(connection, run_id)),
        complete=row.complete,
        command=rest["command"],
        ci=rest["ci"],
        notes=tuple(rest["notes"]),
        demo=row.demo,
    )


def read_results(
    connection: Connection,
    run_id: int,
    *,
    case_ids: Sequence[int] | None = None,
    measurements: bool = True,
) -> list[Result]:
    """Return a run's results in the order of its record, of some cases or of all."""
    query = (
        select(ResultRow.__table__, SampleRow.detail, CaseRow.__table__.c.fingerprint)
        .join(SampleRow, SampleRow.result_id == ResultRow.id)
        .join(CaseRow, CaseRow.id == ResultRow.case_id)
        .where(ResultRow.run_id == run_id)
        .order_by(ResultRow.id)
    )
    if measurements:
        query = query.add_columns(SampleRow.measurements)
    if case_ids is not None:
        query = query.where(ResultRow.case_id.in_(case_ids))
    rows = connection.execute(query).all()
    cases = cases_by_id(connection, [row.case_id for row in rows])
    facts = facts_by_id(connection, {row.facts_id for row in rows})
    return [_result(row, cases, facts, measurements=measurements) for row in rows]


def _result(
    row: Row[Any],
    cases: Mapping[int, Case],
    facts: Mapping[int, tuple[str | None, dict[str, Any]]],
    *,
    measurements: bool,
) -> Result:
    code_fingerprint, shared = facts[row.facts_id]
    sample = tuple(unpack(row.measurements or b"").tolist()) if measurements else tuple[float]()
    if measurements and not sample and row.count is not None:
        reasons = {"measurements_s": THINNED, **shared.get("reasons", {})}
        shared = {**shared, "reasons": reasons}
    readings = unpack_readings(row.detail)
    return join(cases[row.case_id], row._asdict(), shared, code_fingerprint, readings, sample)


def cases_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, Case]:
    """Return cases by the id of their row."""
    return {number: case for number, (_, case) in keyed_cases(connection, ids).items()}


def keyed_cases(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[str, Case]]:
    """Return cases with the fingerprint that the store keeps of each, by the id of their row."""
    found: dict[int, tuple[str, Case]] = {}
    for chunk in chunks(ids):
        rows = connection.execute(select(CaseRow.__table__).where(CaseRow.id.in_(chunk))).all()
        found |= {row.id: (row.fingerprint, case_of(row)) for row in rows}
    return found


def facts_by_id(
    connection: Connection, ids: Iterable[int]
) -> dict[int, tuple[str | None, dict[str, Any]]]:
    """Return code fingerprints and shared facts by the id of their row."""
    found: dict[int, tuple[str | None, dict[str, Any]]] = {}
    for chunk in chunks(ids):
        rows = connection.execute(select(FactsRow.__table__).where(FactsRow.id.in_(chunk)))
        found |= {row.id: (row.code_fingerprint, from_text(row.body)) for row in rows}
    return found
