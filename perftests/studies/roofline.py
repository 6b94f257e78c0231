"""The roofline of the device at hand, with every kernel on it and the articles' figures beside it.

Roofs are theoretical (from the device's attributes) and measured: a copy, and a kernel that does K
multiply-adds an element, which traces the roofline itself. Kernels come from the suite.
"""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from kernels.cases import MIB, Case, cases
from kernels.cost import cost
from kernels.registry import get, kernels
from perftests.studies.frame import Findings, Study, of_this_device, reason_of
from perftests.studies.roofline_curve import STEPS, chain
from perftests.studies.roofline_verdict import draw, shares, verdict
from perftests.studies.tables import Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftests.studies.frame import Scope
    from perftests.studies.tables import Row

DATA = Path(__file__).parent / "articles.toml"
DTYPES = ("float32", "float16", "uint8")
SMALL_DTYPES = ("float32",)
OURS = "cuda_vector"
PEERS = {"fused_transform": "torch_eager"}
"""The peer beside our kernel where it is not `torch`."""
CURVE_MIB, SMALL_CURVE_MIB = 256, 1
SMALL_STEPS = (1, 8, 64)
LONG = 8
"""Rows from which the table of all kernels is folded: the table of shares stands above it."""
NEAR = 0.98
"""Cases that move as many bytes to this share count as equally large: the first is taken."""
CLAIM = (
    'Article A ("Elementwise optimisation on a cloud GPU") gives (a + b) * c 0.125 FLOP a byte and '
    "a P100 a ridge of 7.2, and says that what can be attained is bandwidth times intensity; "
    'article C ("Performance model and elementwise optimisation") gives an A100 19.5 TFLOP/s over '
    "2039 GB/s, a ridge of 9.6, and fp32 add 1/12. Both put elementwise kernels far left of the "
    "ridge, bound by memory."
)
_UNITS = {
    "FLOP rate": "GFLOP/s",
    "bandwidth": "GB/s",
    "attainable": "GFLOP/s",
    "of attainable": "%",
    "copy": "GB/s",
    "triad": "GB/s",
    "fp32": "TFLOP/s",
    "fp64": "TFLOP/s",
    "achieved": "GB/s",
    "of copy": "%",
    "of peak": "%",
}


def chosen(scope: Scope) -> list[Case]:
    """Return the largest aligned case of each kernel and dtype."""
    tier, kind = ("quick" if scope.small else "default"), scope.device.type
    wanted = SMALL_DTYPES if scope.small else DTYPES
    found: list[Case] = []
    for kernel in kernels():
        for dtype in wanted:
            some = [
                case
                for case in cases(kernel, kind, tier)
                if case.dtype == dtype and case.alignment == "aligned"
            ]
            most = max((cost(case).bytes_moved for case in some), default=0)
            found += [case for case in some if cost(case).bytes_moved >= NEAR * most][:1]
    return found


def curve(scope: Scope) -> Section:
    """Measure the multiply-adds: rate against intensity."""
    n = (SMALL_CURVE_MIB if scope.small else CURVE_MIB) * MIB // 4
    rows: list[Row] = []
    for step in SMALL_STEPS if scope.small else STEPS:
        load = chain(step, n, scope.device)
        outcome = scope.measure(load)
        seconds = median(outcome.seconds)
        copy = outcome.result["peaks"].get("copy_bytes_per_s") or float("nan")
        rows.append(
            {
                "multiply-adds": step,
                "intensity": load.flop / load.bytes_moved,
                "FLOP rate": load.flop / seconds,
                "bandwidth": load.bytes_moved / seconds,
                "of copy": load.bytes_moved / seconds / copy,
            }
        )
    how = "K multiply-adds on each fp32 element of a copy, cold medians"
    return Section("The measured roofline", how, rows, _UNITS)


def roofs(scope: Scope, traced: Section) -> Section:
    """Return theoretical and measured roofs with their ridges."""
    bench = scope.session.bench(scope.device)
    moved = 2 * (SMALL_CURVE_MIB if scope.small else CURVE_MIB) * MIB
    with bench.lock.alone(), bench.device.stream():
        peaks = bench.peaks(moved, "cold")
    flop = max(float(row["FLOP rate"]) for row in traced.rows)
    pairs = (
        ("theoretical", peaks.theoretical_bytes_per_s, peaks.theoretical_flop_per_s),
        ("measured", peaks.copy_bytes_per_s, flop),
        ("measured, two reads a write", peaks.two_read_bytes_per_s, flop),
    )
    rows: list[Row] = [
        {"roof": name, "bandwidth": rate, "fp32": top, "ridge": top / rate}
        for name, rate, top in pairs
        if rate and top
    ]
    how = (
        "Theoretical from the device's clocks, bus and units; measured by a copy, by a sum of two "
        "arrays and by the most multiply-adds; ridge in FLOP a byte"
    )
    return Section("Roofs", how, rows, _UNITS)


def points(scope: Scope, over: Section) -> Section:
    """Measure every kernel and its peer and set them against the measured roofs."""
    measured = next(row for row in over.rows if row["roof"] == "measured")
    rows: list[Row] = []
    for case in chosen(scope):
        for name in (OURS, PEERS.get(case.kernel, "torch")):
            rows += _point(scope, case, name, measured)
    how = (
        "Cold medians; attainable is the smaller of the measured FLOP rate and intensity times the "
        "rate of a copy of the same bytes; of attainable is a rate over that, of bytes where a "
        "kernel has no FLOP"
    )
    return Section("Kernels", how, rows, _UNITS, folded=len(rows) > LONG)


def _point(scope: Scope, case: Case, name: str, measured: Row) -> Iterator[Row]:
    implementation = get(case.kernel, name)
    row: Row = {"kernel": case.kernel, "dtype": case.dtype, "implementation": name}
    if implementation.unavailable(scope.device, case.torch_dtype) is not None:
        return
    load = workload(implementation, case, scope.device)
    try:
        outcome = scope.measure(load)
    except RuntimeError as error:
        yield {**row, "note": reason_of(error)}
        return
    seconds = median(outcome.seconds)
    copy = outcome.result["peaks"].get("copy_bytes_per_s") or float(measured["bandwidth"])
    intensity, rate = load.flop / load.bytes_moved, load.bytes_moved / seconds
    row |= {"intensity": intensity, "FLOP rate": load.flop / seconds, "bandwidth": rate}
    if not load.flop:
        yield {**row, "of attainable": rate / copy}
        return
    attainable = min(float(measured["fp32"]), intensity * copy)
    yield {**row, "attainable": attainable, "of attainable": load.flop / seconds / attainable}


def articles() -> tuple[Section, Section]:
    """Return the articles' GPUs with their ridges as computed and as published, and kernels."""
    data: dict[str, list[dict[str, Any]]] = tomllib.loads(DATA.read_text("utf-8"))
    gpus: list[Row] = []
    for found in data["gpu"]:
        row: Row = {key: found[key] for key in ("name", "article", "bandwidth", "fp32", "fp64")}
        row["ridge fp32"] = found["fp32"] / found["bandwidth"]
        row["ridge fp64"] = found["fp64"] / found["bandwidth"]
        if "ridge" in found:
            row["ridge published"] = float(found["ridge"])
        sources = {"copy": found["copy"], "triad": found["triad"], "source": found["source"]}
        gpus.append({**row, **sources, "copy and triad from": found["measured"]})
    rates = {str(row["name"]): float(row["bandwidth"]) for row in gpus}
    some: list[Row] = []
    for found in data["kernel"]:
        intensity = found["flop"] / found["bytes"]
        row = {"kernel": found["name"], "article": found["article"], "gpu": found["gpu"]}
        row |= {"intensity": intensity, "attainable": intensity * rates[found["gpu"]]}
        if "achieved" in found:
            row |= {"achieved": found["achieved"]}
            row |= {"of attainable": found["achieved"] / rates[found["gpu"]]}
        some.append(row)
    how = "As published and from data sheets; ridges in FLOP a byte; see articles.toml"
    told = "Intensity and what the article's GPU could attain by its data sheet"
    return (
        Section("The articles' GPUs", how, gpus, _UNITS),
        Section("The articles' kernels", told, some, _UNITS),
    )


def run(scope: Scope) -> Findings:
    """Trace the roofline and put every kernel on it."""
    traced = curve(scope)
    over = roofs(scope, traced)
    found = points(scope, over)
    gpus, theirs = articles()
    sections = (over, shares(found.rows), found, traced, gpus, theirs)
    text = of_this_device(scope, verdict(over.rows, found.rows, traced.rows, gpus.rows))
    return Findings(sections, text, partial(draw, over.rows, found.rows, traced.rows, gpus.rows))


STUDY = Study("roofline", "Roofline", CLAIM, run)
