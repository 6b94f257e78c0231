"""The report of one result: its figures with what each is measured against, and its roofline."""

from collections.abc import Iterator
from functools import partial

from tracker.model import Result
from tracker.report.beside_time import beside_time, counters_table, figure, states_table
from tracker.report.columns import show_fraction, show_rate
from tracker.report.document import ABSENT, Column, Document, Kind, Row, Table, Value
from tracker.report.verdicts import Heading
from tracker.roofline import Point, Roof, bound_by, place, roofs
from tracker.units import bandwidth, seconds, significant, size
from tracker.yardsticks import (
    LAUNCH_BOUND,
    LAUNCH_BOUND_MEANS,
    fits_sum,
    floor_beside,
    launch_bound,
    sum_fraction,
)

_COPY, _SUM = "copy of as many bytes", "sum of two arrays"

_RIDGE = "Roofline (ridge in FLOP/byte, attainable in GFLOP/s)"
_NO_RIDGE = "Roofline (attainable in GFLOP/s; no FLOP peak is known, so there is no ridge)"


def _significant(value: Value) -> str:
    return significant(value, 3) if isinstance(value, float) else ABSENT


def _gflop(value: Value) -> str:
    return significant(value / 1e9, 4) if isinstance(value, float) else ABSENT


FIGURES = (
    Column("figure", None),
    Column("name", "figure", Kind.TEXT, machine=False),
    Column("value", None),
    Column("shown", "value", Kind.NUMBER, machine=False),
    Column("note", "beside it", Kind.TEXT),
)
ROOFS = (
    Column("roof", "roof", Kind.TEXT),
    Column("bytes_per_s", "GB/s", Kind.NUMBER, show_rate),
    Column("flop_per_s", None),
    Column("ridge_flop_per_byte", "ridge", Kind.NUMBER, _significant, drop=2),
    Column("attainable_flop_per_s", "attainable", Kind.NUMBER, _gflop, drop=1),
    Column("attained_fraction", "attained", Kind.NUMBER, show_fraction),
    Column("bound_by", "bound by", Kind.WORD),
)


def result_document(heading: Heading, result: Result) -> Document:
    """Return the report of one result; its exit code is 0 whatever the result is."""
    figures = tuple(_figures(result))
    placed = _placed(result)
    notes = [f"{warning.code}: {warning.message}" for warning in result.warnings]
    if not placed:
        notes.append(f"no roofline: {_why_no_place(result)}")
    tables = [Table("figures", FIGURES, figures)]
    if placed:
        rows = tuple(_roof_row(result, *pair) for pair in placed)
        has_ridge = any(roof.ridge is not None for roof, _ in placed)
        tables.append(Table("roofline", ROOFS, rows, _RIDGE if has_ridge else _NO_RIDGE))
    tables += [table for table in (states_table(result), counters_table(result)) if table]
    return Document(
        kind="result",
        title=heading.title,
        summary=_summary(result, placed),
        facts={
            **heading.facts,
            "case": result.case.label,
            "fingerprint": result.case.fingerprint,
            "status": result.status.value,
            "launch_bound": launch_bound(result),
        },
        fact_lines=heading.fact_lines,
        tables=tuple(tables),
        notes=(*notes, *heading.notes),
    )


def _figures(result: Result) -> Iterator[Row]:
    """Yield what was measured, then what it is measured against."""
    summary, peaks = result.summary, result.peaks
    if summary is not None:
        middle = f"{seconds(summary.q1_s)} to {seconds(summary.q3_s)}"
        ended = f" ({result.stop_reason})" if result.stop_reason else ""
        note = f"median of {summary.count}{ended}; the middle half is {middle}"
        yield figure("time_s", "time", summary.median_s, seconds(summary.median_s), note)
    if peaks.floor_s is not None:
        note = "by the same timer"
        if summary is not None:
            note += f", {_of_time(peaks.floor_s, summary.median_s)}"
        yield figure("floor_s", "empty kernel", peaks.floor_s, seconds(peaks.floor_s, 3), note)
    rate = result.bandwidth
    if rate is not None and result.bytes_moved is not None:
        moved = f"{size(result.bytes_moved)} moved"
        moved += f"; {LAUNCH_BOUND}: {LAUNCH_BOUND_MEANS}" if launch_bound(result) else ""
        yield figure("bandwidth_bytes_per_s", "bandwidth", rate, bandwidth(rate), moved)
    yield from _shares(result)
    if result.flop and summary is not None:
        did = result.flop / summary.median_s
        note = f"{result.flop:,} FLOP"
        yield figure("flop_per_s", "arithmetic", did, f"{_gflop(did)} GFLOP/s", note)
    if result.flop and result.bytes_moved:
        intensity = result.flop / result.bytes_moved
        shown = f"{_significant(intensity)} FLOP/byte"
        note = "of bytes moved"
        limited = peaks.theoretical_flop_per_s is not None and not launch_bound(result)
        note += "; below a ridge the memory is the limit" if limited else ""
        yield figure("intensity_flop_per_byte", "intensity", intensity, shown, note)
    check = result.correctness
    if check.worst_ratio is not None:
        shown = _significant(float(check.worst_ratio))
        note = "of the error bound, at the worst element; at most 1 passes"
        yield figure("worst_ratio", "error", check.worst_ratio, shown, note)
    yield from beside_time(result)


def _shares(result: Result) -> Iterator[Row]:
    """Yield the share of each denominator that is known, and why one is not where that is known."""
    peaks, rate = result.peaks, result.bandwidth
    peak, copy, two = (
        peaks.theoretical_bytes_per_s,
        peaks.copy_bytes_per_s,
        peaks.two_read_bytes_per_s,
    )
    of_peak = rate / peak if rate and peak else None
    by = f" ({peaks.copy_source})" if peaks.copy_source else ""
    both = f"a {_SUM} of as many bytes, two reads and a write"
    for key, denominator, name, fraction, told in (
        ("theoretical", peak, "of peak", of_peak, "the memory's theoretical rate"),
        ("copy", copy, "of copy", result.copy_fraction, f"a {_COPY}{by}"),
        ("two_read", two, "of sum", sum_fraction(result), both),
    ):
        note = result.reasons.get(f"peaks.{key}_bytes_per_s")
        if denominator is not None:
            note = f"{bandwidth(denominator)}, {told}"
        if note is not None:
            yield figure(f"{key}_fraction", name, fraction, show_fraction(fraction), note)


def _placed(result: Result) -> tuple[tuple[Roof, Point], ...]:
    """Return where the result stands under each roof that it knows, the fairest last."""
    if result.summary is None or not result.bytes_moved or result.flop is None:
        return ()
    under = partial(
        place,
        seconds=result.summary.median_s,
        bytes_moved=result.bytes_moved,
        flop=result.flop,
    )
    known = roofs(result.peaks, copy=_COPY, sum_of_two=_SUM if fits_sum(result) else None)
    return tuple((roof, under(roof=roof)) for roof in known)


def _why_no_place(result: Result) -> str:
    if result.summary is None:
        return "there is no time"
    if not result.bytes_moved or result.flop is None:
        return "the record does not say how many bytes were moved, or how many operations done"
    return "neither a theoretical rate nor that of a copy is known"


def _roof_row(result: Result, roof: Roof, point: Point) -> Row:
    return Row(
        {
            "roof": roof.name,
            "bytes_per_s": roof.bytes_per_s,
            "flop_per_s": roof.flop_per_s,
            "ridge_flop_per_byte": roof.ridge,
            # Without arithmetic nothing of it can be attained; the rate of bytes is the measure.
            "attainable_flop_per_s": point.attainable_flop_per_s if point.intensity else None,
            "attained_fraction": point.fraction,
            "bound_by": bound_by(roof, point, launch=launch_bound(result)),
        }
    )


def _summary(result: Result, placed: tuple[tuple[Roof, Point], ...]) -> str:
    beside = _beside(result)
    if launch_bound(result):
        return f"bound by launch, so its bandwidth says nothing of the memory{beside}"
    if not placed:
        return f"{result.status.value}: no place under a roof{beside}"
    roof, point = placed[-1]
    attained = show_fraction(point.fraction)
    allowed = f"{attained} of what its roof allows ({roof.name})"
    bound = bound_by(roof, point, launch=False)
    found = f"{allowed}; no FLOP peak is known" if bound is None else f"bound by {bound}, {allowed}"
    return f"{found}{beside}"


def _beside(result: Result) -> str:
    """Return how much of a small time an empty kernel takes, nothing of a large one."""
    floor = floor_beside(result)
    if floor is None or result.summary is None:
        return ""
    return f"; an empty kernel takes {_of_time(floor, result.summary.median_s)}"


def _of_time(floor_s: float, time_s: float) -> str:
    return f"{show_fraction(floor_s / time_s)} of the time"
