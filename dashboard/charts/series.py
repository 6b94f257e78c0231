"""The series chart: measurements, median with interval, baseline, change points, environments."""

from dataclasses import dataclass, field
from math import isnan
from typing import Literal

import altair as alt
import pandas as pd

from dashboard.charts.base import Described, commit_axis, plural
from dashboard.charts.legend import Entry
from dashboard.metrics import Metric, Scale
from dashboard.palette import DASHES, MARKS, Palette
from tracker.model import VerdictKind

HEIGHT = 360
SELECTION = "commit"
# Half the width of an environment band, as a part of half the chart's height.
_HATCH = 0.03
_TOOLTIP = (
    ("sha", "commit"),
    ("subject", "subject"),
    ("author", "author"),
    ("date", "measured"),
    ("line", "case"),
    ("value_text", "median"),
    ("interval_text", "interval"),
    ("status", "status"),
    ("note", "note"),
)


@dataclass(frozen=True, slots=True)
class SeriesView:
    """What the series chart draws.

    `points`: one row a result, with position, run_id, sha, subject, author, date, line, value, low,
    high, baseline, status, note; values in base units, NaN where nothing was measured.
    `measurements`: position, date, line, value. `changes`: position, date, kind, label, line.
    `environments`: position, date, text: where the environment changed, before that position.
    """

    points: pd.DataFrame
    metric: Metric
    measurements: pd.DataFrame = field(default_factory=pd.DataFrame)
    changes: pd.DataFrame = field(default_factory=pd.DataFrame)
    environments: pd.DataFrame = field(default_factory=pd.DataFrame)
    axis: Literal["commit", "date"] = "commit"
    zero: bool = False
    log: bool = False


def series_chart(view: SeriesView, colours: Palette, *, height: int = HEIGHT) -> Described:
    """Return the chart of up to six series over commits or dates."""
    scale = view.metric.scale(view.points["value"].dropna())
    points = _scaled(view.points, scale, ("value", "low", "high", "baseline"))
    points["value_text"] = [_text(v, view.metric) for v in view.points["value"]]
    points["interval_text"] = [
        _interval(low, high, view.metric)
        for low, high in zip(view.points["low"], view.points["high"], strict=True)
    ]
    layers: list[alt.Chart] = []
    x, y = _x(view), _y(view, scale, "value")
    if len(view.environments):
        layers.append(_environments(view, x, colours))
    if len(view.measurements):
        layers.append(_measurements(_scaled(view.measurements, scale, ("value",)), x, y, colours))
    layers += _lines(points, x, [_y(view, scale, c) for c in ("value", "low", "baseline")], colours)
    if len(view.changes):
        layers += _changes(view, x, colours)
    chart = alt.layer(*layers, height=height, width="container")
    return Described(chart, describe(view), _legend(view.points, colours))


def _legend(points: pd.DataFrame, colours: Palette) -> tuple[Entry, ...]:
    names = list(dict.fromkeys(points["line"]))
    if len(names) < 2:
        return ()
    return tuple(
        Entry(name, colour, dash=dash)
        for name, colour, dash in zip(names, colours.lines, DASHES, strict=False)
    )


def describe(view: SeriesView) -> str:
    """Return what the series chart shows, in one sentence."""
    lines = list(dict.fromkeys(view.points["line"]))
    runs = plural(view.points["run_id"].nunique(), "run")
    known = view.points.dropna(subset=["value"])
    if not len(known):
        return f"{view.metric.title} of {', '.join(lines)}: nothing measured in {runs}."
    ends = ", ".join(
        f"{line} from {view.metric.text(part['value'].iloc[0])} "
        f"to {view.metric.text(part['value'].iloc[-1])}"
        for line, part in known.groupby("line", sort=False, observed=True)
    )
    changes = [f"{row.label} at {row.sha}" for row in view.changes.itertuples()]
    told = f"; changes: {', '.join(changes)}" if changes else "; no change point"
    return f"{view.metric.title} over {runs}: {ends}{told}."


def _scaled(frame: pd.DataFrame, scale: Scale, columns: tuple[str, ...]) -> pd.DataFrame:
    return frame.assign(**{column: frame[column] / scale.per for column in columns})


def _text(value: float, metric: Metric) -> str:
    return "not measured" if isnan(value) else metric.text(value)


def _interval(low: float, high: float, metric: Metric) -> str:
    if isnan(low) or isnan(high):
        return "none"
    return f"{metric.text(low)} to {metric.text(high)}"


def _x(view: SeriesView) -> alt.X:
    if view.axis == "date":
        return alt.X("date:T", title=None, axis=alt.Axis(grid=False, labelOverlap="greedy"))
    order = view.points.drop_duplicates("position").sort_values("position")
    labels = dict(zip(order["position"], order["sha"], strict=True))
    last = int(order["position"].max())
    return alt.X(
        "position:Q",
        axis=commit_axis([str(labels.get(i, "")) for i in range(last + 1)]),
        scale=alt.Scale(domain=[-0.6, last + 0.6], nice=False),
    )


def _y(view: SeriesView, scale: Scale, column: str) -> alt.Y:
    return alt.Y(
        f"{column}:Q",
        title=f"{view.metric.title} ({scale.unit})",
        scale=alt.Scale(
            type="log" if view.log else "linear",
            zero=view.zero and not view.log,
            nice=True,
            padding=12,
        ),
        axis=alt.Axis(tickCount=6, format="~f"),
    )


def _environments(view: SeriesView, x: alt.X, colours: Palette) -> alt.Chart:
    """Return narrow hatched bands over the whole height, wherever the environment changed."""
    chart: alt.Chart = (
        alt.Chart(view.environments)
        .mark_point(
            shape=_hatch(), filled=False, strokeWidth=1.1, color=colours.unchanged, clip=True
        )
        .encode(
            x=_before(x),
            y=alt.value(alt.ExprRef("height / 2")),
            size=alt.value(alt.ExprRef("height * height")),
            tooltip=[alt.Tooltip("text:N", title="environment changed")],
        )
    )
    return chart


def _hatch() -> str:
    """Return slanted strokes one above the other as a path in the square from -1 to 1."""
    return "".join(
        f"M-{_HATCH},{-1 + i * _HATCH:.3f}L{_HATCH},{-1 + (i - 1) * _HATCH:.3f}"
        for i in range(1, round(2 / _HATCH) + 1)
    )


def _before(x: alt.X) -> alt.X:
    """Return the same axis on the column that stands half a commit earlier."""
    copy: alt.X = x.copy()
    copy.shorthand = str(x.shorthand).replace("position", "edge")
    return copy


def _measurements(frame: pd.DataFrame, x: alt.X, y: alt.Y, colours: Palette) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_circle(size=9, opacity=0.22, color=colours.unchanged, clip=True)
        .encode(x=x, y=y)
    )
    return chart


def _lines(points: pd.DataFrame, x: alt.X, ys: list[alt.Y], colours: Palette) -> list[alt.Chart]:
    y, low, baseline = ys
    names = list(dict.fromkeys(points["line"]))
    colour = alt.Color(
        "line:N",
        sort=names,
        legend=None,
        scale=alt.Scale(domain=names, range=list(colours.lines)),
    )
    dash = alt.StrokeDash(
        "line:N", sort=names, legend=None, scale=alt.Scale(domain=names, range=list(DASHES))
    )
    base = alt.Chart(points)
    band = base.mark_area(opacity=0.16, interpolate="linear").encode(
        x=x, y=low, y2="high:Q", color=colour
    )
    step = base.mark_line(
        interpolate="step", strokeDash=[3, 3], strokeWidth=1.2, opacity=0.75
    ).encode(x=x, y=baseline, color=colour)
    line = base.mark_line(strokeWidth=1.6).encode(x=x, y=y, color=colour, strokeDash=dash)
    picked = alt.selection_point(name=SELECTION, fields=["run_id", "line"], on="click", empty=False)
    dots = (
        base.mark_point(filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=colour,
            size=alt.condition(picked, alt.value(130), alt.value(34)),
            shape=alt.Shape(
                "trusted:N",
                legend=None,
                scale=alt.Scale(domain=["yes", "no"], range=["circle", "cross"]),
            ),
            tooltip=[alt.Tooltip(f"{column}:N", title=title) for column, title in _TOOLTIP],
        )
        .add_params(picked)
    )
    level = [step] if points["baseline"].notna().any() else []
    return [band, *level, line, dots]


def _changes(view: SeriesView, x: alt.X, colours: Palette) -> list[alt.Chart]:
    """Return a rule and a label a change; a layer a kind, since the lines own the colour scale."""
    layers: list[alt.Chart] = []
    present = [kind for kind in VerdictKind if (view.changes["kind"] == str(kind)).any()]
    for row, kind in enumerate(present):
        base = alt.Chart(view.changes[view.changes["kind"] == str(kind)])
        colour = colours.verdict(kind)
        tooltip = [
            alt.Tooltip("label:N", title="change point"),
            alt.Tooltip("sha:N", title="commit"),
        ]
        layers.append(
            base.mark_rule(strokeWidth=1.5, strokeDash=[6, 3], color=colour).encode(
                x=_before(x), tooltip=tooltip
            )
        )
        layers.append(
            # A line a kind: a loss and its return stand close together, on a telephone too close.
            base.mark_text(
                align="left", baseline="top", dx=5, dy=2 + 13 * row, fontWeight=600, color=colour
            ).encode(x=_before(x), y=alt.value(0), text="label:N")
        )
    return layers


def change_label(kind: VerdictKind, effect: str) -> str:
    """Return the label of a change point's rule: arrow and change, such as `▲ -5.0 %`."""
    return f"{MARKS[kind].arrow} {effect}"
