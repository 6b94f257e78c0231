"""The roofline: attainable FLOP/s over arithmetic intensity, and where each case stands.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model",
CACM 52(4), 2009.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.base import Described, decades, plural
from dashboard.charts.legend import Entry
from dashboard.palette import Palette
from tracker import units
from tracker.roofline import Roof

HEIGHT = 420
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_STEPS = 60
_ROOF_DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 4), (2, 3))


def roofline_chart(cases: pd.DataFrame, roofs: Sequence[Roof], colours: Palette) -> Described:
    """Return the log-log roofline of one GPU model and dtype.

    `cases`: label, implementation, intensity (FLOP/byte), flop_per_s, bandwidth_text, bytes_text,
    flop_text. A roof without a FLOP rate is of the memory only and has no ridge point.
    """
    low, high = _span(cases, roofs)
    x = _log_x("intensity", low, high)
    layers = [_roofs(roofs, low, high, x, colours)]
    if any(roof.ridge is not None for roof in roofs):
        layers += _ridges(roofs, x, colours)
    layers.append(_cases(cases, x, colours))
    chart = alt.layer(*layers, height=HEIGHT, width="container")
    return Described(chart, _describe(cases, roofs), _legend(cases, roofs, colours))


def _span(cases: pd.DataFrame, roofs: Sequence[Roof]) -> tuple[float, float]:
    known = [float(v) for v in cases["intensity"] if v > 0]
    known += [roof.ridge for roof in roofs if roof.ridge is not None]
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


def _roofs(roofs: Sequence[Roof], low: float, high: float, x: alt.X, colours: Palette) -> alt.Chart:
    rows = []
    for roof in roofs:
        grid = [float(intensity) for intensity in np.geomspace(low, high, _STEPS)]
        if roof.ridge is not None:
            grid = sorted([*grid, roof.ridge])
        rows += [(roof.name, at, roof.attainable(at) / 1e9, roof.source) for at in grid]
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


def _ridges(roofs: Sequence[Roof], x: alt.X, colours: Palette) -> list[alt.Chart]:
    points = [
        (roof.ridge, roof.attainable(roof.ridge) / 1e9, roof.name)
        for roof in roofs
        if roof.ridge is not None
    ]
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
                alt.Tooltip("attained_text:N", title="of its roof"),
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


def _describe(cases: pd.DataFrame, roofs: Sequence[Roof]) -> str:
    told = "; ".join(f"{roof.name} {units.bandwidth(roof.bytes_per_s)}" for roof in roofs)
    first = roofs[0].ridge if roofs else None
    ridge = "" if first is None else f", ridge point {units.significant(first, 3)} FLOP/byte"
    return f"Roofline of {plural(len(cases), 'case')}: {told or 'no roof known'}{ridge}."
