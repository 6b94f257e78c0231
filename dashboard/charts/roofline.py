"""The roofline: attainable FLOP/s over arithmetic intensity, and where each case stands.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model",
CACM 52(4), 2009.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.base import Described, decades, plural
from dashboard.charts.legend import Entry
from dashboard.palette import Palette
from tracker import units

HEIGHT = 420
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_STEPS = 60
_ROOF_DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 4), (2, 3))


@dataclass(frozen=True, slots=True)
class Roof:
    """A memory roof: its bandwidth in bytes per second and where the number comes from."""

    name: str
    bytes_per_s: float
    source: str


def roofline_chart(
    cases: pd.DataFrame, roofs: Sequence[Roof], peak_flop_per_s: float | None, colours: Palette
) -> Described:
    """Return the log-log roofline of one GPU model and dtype.

    `cases`: label, implementation, intensity (FLOP/byte), flop_per_s, bandwidth_text, bytes_text,
    flop_text. `peak_flop_per_s` None draws memory roofs only, without a ridge point.
    """
    low, high = _span(cases, roofs, peak_flop_per_s)
    x = _log_x("intensity", low, high)
    layers = [_roofs(roofs, peak_flop_per_s, low, high, x, colours)]
    if peak_flop_per_s is not None:
        layers += _ridges(roofs, peak_flop_per_s, x, colours)
    layers.append(_cases(cases, x, colours))
    chart = alt.layer(*layers, height=HEIGHT, width="container")
    return Described(
        chart, _describe(cases, roofs, peak_flop_per_s), _legend(cases, roofs, colours)
    )


def ridge_point(roof: Roof, peak_flop_per_s: float) -> float:
    """Return the intensity, in FLOP/byte, from which the FLOP peak limits instead of the memory."""
    return peak_flop_per_s / roof.bytes_per_s


def _span(
    cases: pd.DataFrame, roofs: Sequence[Roof], peak_flop_per_s: float | None
) -> tuple[float, float]:
    known = [float(v) for v in cases["intensity"] if v > 0]
    if peak_flop_per_s is not None:
        known += [ridge_point(roof, peak_flop_per_s) for roof in roofs]
    known = known or [0.1, 1.0]
    return min(known) / 2, max(known) * 2


def _log_x(column: str, low: float, high: float) -> alt.X:
    return alt.X(
        f"{column}:Q",
        title="Arithmetic intensity (FLOP/byte)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(format="~g", values=decades(low, high), labelOverlap="greedy"),
    )


def _log_y() -> alt.Y:
    return alt.Y(
        "gflop_per_s:Q",
        title="GFLOP/s",
        scale=alt.Scale(type="log", nice=False, padding=14),
        axis=alt.Axis(format="~f", values=decades(1e-3, 1e6), labelOverlap="greedy"),
    )


def _roofs(
    roofs: Sequence[Roof],
    peak: float | None,
    low: float,
    high: float,
    x: alt.X,
    colours: Palette,
) -> alt.Chart:
    rows = []
    for roof in roofs:
        grid = list(np.geomspace(low, high, _STEPS))
        if peak is not None:
            grid = sorted([*grid, ridge_point(roof, peak)])
        for intensity in grid:
            attainable = intensity * roof.bytes_per_s
            attainable = attainable if peak is None else min(attainable, peak)
            rows.append((roof.name, float(intensity), attainable / 1e9, roof.source))
    frame = pd.DataFrame(rows, columns=["roof", "intensity", "gflop_per_s", "source"])
    names = [roof.name for roof in roofs]
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6, color=colours.muted)
        .encode(
            x=x,
            y=_log_y(),
            strokeDash=alt.StrokeDash(
                "roof:N",
                sort=names,
                legend=None,
                scale=alt.Scale(domain=names, range=list(_ROOF_DASHES[: len(names)])),
            ),
            tooltip=[alt.Tooltip("roof:N"), alt.Tooltip("source:N", title="from")],
        )
    )
    return chart


def _ridges(roofs: Sequence[Roof], peak: float, x: alt.X, colours: Palette) -> list[alt.Chart]:
    points = [(ridge_point(roof, peak), peak / 1e9, roof.name) for roof in roofs]
    frame = pd.DataFrame(points, columns=["intensity", "gflop_per_s", "roof"])
    frame["text"] = [f"ridge {units.significant(v, 3)} FLOP/byte" for v in frame["intensity"]]
    base = alt.Chart(frame)
    mark = base.mark_point(shape="diamond", size=70, color=colours.text, filled=False).encode(
        x=x, y=_log_y(), tooltip=[alt.Tooltip("roof:N"), alt.Tooltip("text:N", title="ridge point")]
    )
    label = (
        alt.Chart(frame.head(1))
        .mark_text(align="right", dx=-6, dy=-12, color=colours.muted)
        .encode(x=x, y=_log_y(), text="text:N")
    )
    return [mark, label]


def _cases(cases: pd.DataFrame, x: alt.X, colours: Palette) -> alt.Chart:
    shown = cases.assign(gflop_per_s=cases["flop_per_s"] / 1e9)
    names = sorted(set(shown["implementation"]))
    chart: alt.Chart = (
        alt.Chart(shown)
        .mark_point(size=64, strokeWidth=1.6, filled=False, opacity=0.9)
        .encode(
            x=x,
            y=_log_y(),
            color=alt.Color(
                "implementation:N",
                sort=names,
                legend=None,
                scale=alt.Scale(domain=names, range=_cycled(colours.lines, len(names))),
            ),
            shape=alt.Shape(
                "implementation:N",
                sort=names,
                legend=None,
                scale=alt.Scale(domain=names, range=_shapes(len(names))),
            ),
            tooltip=[
                alt.Tooltip("label:N", title="case"),
                alt.Tooltip("bandwidth_text:N", title="bandwidth"),
                alt.Tooltip("attained_text:N", title="of the copy roof"),
                alt.Tooltip("bytes_text:N", title="bytes moved"),
                alt.Tooltip("flop_text:N", title="FLOP"),
            ],
        )
    )
    return chart


def _legend(cases: pd.DataFrame, roofs: Sequence[Roof], colours: Palette) -> tuple[Entry, ...]:
    names = sorted(set(cases["implementation"]))
    lines = [
        Entry(roof.name, colours.muted, dash=dash)
        for roof, dash in zip(roofs, _ROOF_DASHES, strict=False)
    ]
    marks = [
        Entry(name, colour, shape=shape, filled=False)
        for name, colour, shape in zip(
            names, _cycled(colours.lines, len(names)), _shapes(len(names)), strict=True
        )
    ]
    return (*lines, *marks)


def _shapes(count: int) -> list[str]:
    """Return shapes that, with the colours of the same places, never stand together twice."""
    kinds = len(_SHAPES)
    return [_SHAPES[(i + i // kinds) % kinds] for i in range(count)]


def _cycled(values: Sequence[str], count: int) -> list[str]:
    return [values[i % len(values)] for i in range(count)]


def _describe(cases: pd.DataFrame, roofs: Sequence[Roof], peak: float | None) -> str:
    told = "; ".join(f"{roof.name} {units.bandwidth(roof.bytes_per_s)}" for roof in roofs)
    ridge = (
        f", ridge point {units.significant(ridge_point(roofs[0], peak), 3)} FLOP/byte"
        if peak is not None and roofs
        else ""
    )
    return f"Roofline of {plural(len(cases), 'case')}: {told or 'no roof known'}{ridge}."
