"""Both sides of a comparison as they were measured: every measurement, quartiles and median."""

import altair as alt
import pandas as pd

from dashboard.charts.base import ROWS, X_AXIS, Described, plural
from dashboard.metrics import TIME
from dashboard.palette import Palette

_MAX_TICKS = 1_000


def distribution_chart(measurements: pd.DataFrame, colours: Palette) -> Described:
    """Return two rows of measurements on one time axis.

    `measurements`: side (a text such as `base a1b2c3d`, in the order to show), value in seconds.
    """
    scale = TIME.scale(measurements["value"])
    sides = list(dict.fromkeys(measurements["side"]))
    shown = pd.concat(
        [_thin(measurements[measurements["side"] == side]) for side in sides], ignore_index=True
    )
    shown = shown.assign(scaled=shown["value"] / scale.per)
    boxes = pd.DataFrame([_box(measurements, side, scale.per) for side in sides])
    y = alt.Y("side:N", sort=sides, title=None, axis=ROWS)
    title = f"Time ({scale.unit})"
    x_scale = alt.Scale(zero=False, padding=8)

    def x(column: str) -> alt.X:
        return alt.X(
            f"{column}:Q", title=title, scale=x_scale, axis=alt.Axis(tickCount=7, format="~f")
        )

    line = alt.Color(
        "side:N", legend=None, scale=alt.Scale(domain=sides, range=list(colours.lines[:2]))
    )
    ticks = (
        alt.Chart(shown)
        .mark_tick(thickness=1, height=26, opacity=0.3)
        .encode(x=x("scaled"), y=y, color=line)
    )
    box = (
        alt.Chart(boxes)
        .mark_bar(height=10, opacity=0.45)
        .encode(x=x("q1"), x2="q3:Q", y=y, color=line)
    )
    median = (
        alt.Chart(boxes)
        .mark_tick(thickness=3, height=34)
        .encode(
            x=x("median"),
            y=y,
            color=line,
            tooltip=["side:N", alt.Tooltip("median:Q", format=".5~g")],
        )
    )
    chart = alt.layer(ticks, box, median, height=44 * len(sides) + X_AXIS, width="container")
    return Described(chart, _describe(measurements))


def _box(measurements: pd.DataFrame, side: str, per: float) -> dict[str, str | float]:
    values = measurements.loc[measurements["side"] == side, "value"] / per
    quartiles = [float(values.quantile(q)) for q in (0.25, 0.5, 0.75)]
    return {"side": side, **dict(zip(("q1", "median", "q3"), quartiles, strict=True))}


def _thin(side: pd.DataFrame) -> pd.DataFrame:
    """Return at most 1,000 measurements, evenly spread over the sorted values."""
    if len(side) <= _MAX_TICKS:
        return side
    step = len(side) / _MAX_TICKS
    return side.sort_values("value").iloc[[int(i * step) for i in range(_MAX_TICKS)]]


def _describe(measurements: pd.DataFrame) -> str:
    parts = [
        f"{side}: median {TIME.text(float(part['value'].median()))} of "
        f"{plural(len(part), 'measurement')}"
        for side, part in measurements.groupby("side", sort=False, observed=True)
    ]
    return f"Measured times, {'; '.join(parts)}."
