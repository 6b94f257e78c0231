"""Results of runs: whole, as columns, or as the history of each case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, select

from tracker.model import Case, Peaks, Result, Status, Summary
from tracker.queries.columns import raw, read_columns
from tracker.queries.info import RunInfo
from tracker.store import Store
from tracker.store.codec import unpack_all
from tracker.store.reader import cases_by_id, facts_by_id, keyed_cases, read_results
from tracker.store.rows import chunks
from tracker.store.schema import CaseRow, FactsRow, ResultRow, SampleRow

Floats = NDArray[np.float64]
Numbers = Sequence[float | None]
_SUMMARY = ("median_s", "mean_s", "min_s", "max_s", "q1_s", "q3_s", "stddev_s")


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Results of one or several runs as columns of one length; a missing number is NaN.

    `run[i]` is an index into `runs`, `case[i]` into `cases`; `case_keys` are the fingerprints of
    `cases`. Seconds, bytes, bytes per second.
    """

    runs: tuple[RunInfo, ...]
    cases: tuple[Case, ...]
    case_keys: tuple[str, ...]
    run: NDArray[np.int64]
    case: NDArray[np.int64]
    status: NDArray[np.str_]
    shared: NDArray[np.bool_]
    count: NDArray[np.int64]
    median_s: Floats
    q1_s: Floats
    q3_s: Floats
    bytes_moved: Floats
    copy_bytes_per_s: Floats
    median_cycles: Floats

    @property
    def bandwidth(self) -> Floats:
        """Bytes per second."""
        return self.bytes_moved / self.median_s


def results(
    store: Store,
    run: RunInfo,
    *,
    cases: Sequence[str] | None = None,
    measurements: bool = True,
) -> tuple[Result, ...]:
    """Return the results of a run in its record's order, of cases by fingerprint or of all.

    Without `measurements` they come with an empty sample, faster.
    """
    with store.reading(f"read results of run {run.run_id}") as connection:
        ids = None
        if cases is not None:
            query = select(CaseRow.id).where(CaseRow.fingerprint.in_(cases))
            ids = connection.execute(query).scalars().all()
        found = read_results(connection, [run.number], case_ids=ids, measurements=measurements)
    return tuple(found[run.number])


def both_results(
    store: Store, base: RunInfo, head: RunInfo
) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
    """Return the results of two runs, as `results` does of one; together it takes less."""
    with store.reading(f"read results of runs {base.run_id} and {head.run_id}") as connection:
        found = read_results(connection, [base.number, head.number])
    return tuple(found[base.number]), tuple(found[head.number])


_TABLE = tuple(
    raw(column)
    for column in (
        ResultRow.run_id,
        ResultRow.case_id,
        ResultRow.status,
        ResultRow.shared,
        ResultRow.count,
        ResultRow.median_s,
        ResultRow.q1_s,
        ResultRow.q3_s,
        ResultRow.bytes_moved,
        ResultRow.copy_bytes_per_s,
        ResultRow.median_cycles,
    )
)


def result_table(
    store: Store, runs: Sequence[RunInfo], *, cases: Sequence[str] | None = None
) -> ResultTable:
    """Return the results of runs as columns, in the order of `runs`, then of each record.

    Of cases by fingerprint, or of all.
    """
    position = {run.number: index for index, run in enumerate(runs)}
    query = select(*_TABLE).order_by(ResultRow.id)
    if cases is not None:
        wanted = select(CaseRow.id).where(CaseRow.fingerprint.in_(cases))
        query = query.where(ResultRow.case_id.in_(wanted))
    with store.reading("read results") as connection:
        parts = [
            read_columns(connection, query.where(ResultRow.run_id.in_(chunk)))
            for chunk in chunks(position)
        ]
        table = [list(chain.from_iterable(column)) for column in zip(*parts, strict=True)]
        table = table or [[] for _ in _TABLE]
        known = keyed_cases(connection, dict.fromkeys(table[1]))
    index = {case_id: number for number, case_id in enumerate(known)}
    run = np.array([position[number] for number in table[0]], dtype=np.int64)
    order = np.argsort(run, kind="stable")
    return ResultTable(
        runs=tuple(runs),
        cases=tuple(case for _, case in known.values()),
        case_keys=tuple(key for key, _ in known.values()),
        run=run[order],
        case=np.array([index[number] for number in table[1]], dtype=np.int64)[order],
        status=np.array(table[2], dtype=np.str_)[order],
        shared=np.array(table[3], dtype=np.bool_)[order],
        count=np.array([number or 0 for number in table[4]], dtype=np.int64)[order],
        median_s=_floats(table[5])[order],
        q1_s=_floats(table[6])[order],
        q3_s=_floats(table[7])[order],
        bytes_moved=_floats(table[8])[order],
        copy_bytes_per_s=_floats(table[9])[order],
        median_cycles=_floats(table[10])[order],
    )


def _floats(values: Sequence[float | None]) -> Floats:
    # None becomes NaN.
    return np.array(values, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """What two runs measured of the cases that both have.

    `base` and `head` give a number a case by its name in `SIDE`: a count or seconds, or None.
    """

    labels: tuple[str, ...]
    case_keys: tuple[str, ...]
    base: Mapping[str, Numbers]
    head: Mapping[str, Numbers]


SIDE = ("count", *_SUMMARY)
_BASE, _HEAD = (ResultRow.__table__.alias(name) for name in ("base", "head"))
_SIDE_BY_SIDE = (
    select(
        raw(CaseRow.label),
        raw(CaseRow.fingerprint),
        *(raw(side.c[name]) for side in (_BASE, _HEAD) for name in SIDE),
    )
    .join_from(_HEAD, _BASE, _BASE.c.case_id == _HEAD.c.case_id)
    .join(CaseRow, CaseRow.id == _HEAD.c.case_id)
    .where(_BASE.c.run_id == bindparam("base"), _HEAD.c.run_id == bindparam("head"))
    .order_by(_HEAD.c.id)
)


def side_by_side(store: Store, base: RunInfo, head: RunInfo) -> SideBySide:
    """Return the summaries of two runs side by side, in the order of head's record.

    For a plain look: names are those that the store keeps, and no result is made of them.
    """
    with store.reading("read summaries") as connection:
        runs = {"base": base.number, "head": head.number}
        labels, keys, *numbers = read_columns(connection, _SIDE_BY_SIDE, runs)
    of_base, of_head = numbers[: len(SIDE)], numbers[len(SIDE) :]
    sides = (dict(zip(SIDE, side, strict=True)) for side in (of_base, of_head))
    return SideBySide(tuple(labels), tuple(keys), *sides)


def histories(
    store: Store, runs: Sequence[RunInfo], *, cases: Sequence[str] | None = None
) -> dict[str, tuple[tuple[RunInfo, Result], ...]]:
    """Return, by case fingerprint, what these runs say of each case, in the order of `runs`.

    The results are light: case, status, measurements, summary, bytes, cycles, the copy's bandwidth
    and the code's fingerprint; no device states, first calls or warnings.
    """
    query = (
        select(ResultRow.__table__, SampleRow.measurements, FactsRow.code_fingerprint)
        .join(SampleRow, SampleRow.result_id == ResultRow.id)
        .join(FactsRow, FactsRow.id == ResultRow.facts_id)
    )
    if cases is not None:
        wanted = select(CaseRow.id).where(CaseRow.fingerprint.in_(cases))
        query = query.where(ResultRow.case_id.in_(wanted))
    by_number = {run.number: (index, run) for index, run in enumerate(runs)}
    rows: list[Any] = []
    with store.reading("read histories") as connection:
        for chunk in chunks(by_number):
            rows += connection.execute(query.where(ResultRow.run_id.in_(chunk))).all()
        known = cases_by_id(connection, {row.case_id for row in rows})
    rows.sort(key=lambda row: by_number[row.run_id][0])
    keys = {number: case.fingerprint for number, case in known.items()}
    samples = unpack_all([row.measurements or b"" for row in rows])
    found: dict[str, list[tuple[RunInfo, Result]]] = {}
    for row, sample in zip(rows, samples, strict=True):
        light = _light(row, known[row.case_id], tuple(sample.tolist()))
        found.setdefault(keys[row.case_id], []).append((by_number[row.run_id][1], light))
    return {key: tuple(entries) for key, entries in found.items()}


def _light(row: Any, case: Case, sample: tuple[float, ...]) -> Result:
    summary = None
    if row.count is not None:
        summary = Summary(row.count, *(getattr(row, name) for name in _SUMMARY))
    return Result(
        case=case,
        status=Status(row.status),
        measurements_s=sample,
        summary=summary,
        bytes_moved=row.bytes_moved,
        median_cycles=row.median_cycles,
        peaks=Peaks(copy_bytes_per_s=row.copy_bytes_per_s),
        code_fingerprint=row.code_fingerprint,
    )


def code_fingerprints(store: Store, run: RunInfo) -> dict[str, str | None]:
    """Return, by case fingerprint, the fingerprint of the code that ran."""
    with store.reading("read code fingerprints") as connection:
        rows = connection.execute(
            select(CaseRow.fingerprint, ResultRow.facts_id)
            .join(CaseRow, CaseRow.id == ResultRow.case_id)
            .where(ResultRow.run_id == run.number)
        ).all()
        facts = facts_by_id(connection, {row.facts_id for row in rows})
    return {row.fingerprint: facts[row.facts_id][0] for row in rows}
