"""Every implementation of a kernel side by side: bars for one case, lines over sizes, models."""

import altair as alt
import pandas as pd

from dashboard.charts.base import ROWS, X_AXIS, Described, plural
from dashboard.charts.legend import Entry
from dashboard.metrics import Metric
from dashboard.palette import DASHES, MAX_LINES, Palette
from tracker import units
from tracker.yardsticks import LAUNCH_BOUND

_ROW = 30


def ladder_chart(
    rungs: pd.DataFrame,
    metric: Metric,
    colours: Palette,
    reference: tuple[str, float] | None = None,
) -> Described:
    """Return one bar an implementation for one shape, best first, from zero.

    `rungs`: implementation, value in base units, launch_bound. `reference` is a rule across the
    bars, what it is of and its value: the bandwidth of a copy of the same size, say.
    """
    scale = metric.scale(rungs["value"])
    ordered = rungs.sort_values("value", ascending=not metric.higher_is_better)
    shown = ordered.assign(scaled=ordered["value"] / scale.per, text=_texts(ordered, metric))
    names = list(shown["implementation"])
    y = alt.Y("implementation:N", sort=names, title=None, axis=ROWS)
    x = alt.X(
        "scaled:Q",
        title=f"{metric.title} ({scale.unit})",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(tickCount=7, format="~f"),
    )
    base = alt.Chart(shown)
    layers = [
        base.mark_bar(color=colours.lines[1], opacity=0.55, height=16).encode(x=x, y=y),
        base.mark_text(align="left", color=colours.text).encode(x=alt.value(6), y=y, text="text:N"),
    ]
    if reference is not None:
        what, value = reference
        rule = alt.Chart(
            pd.DataFrame(
                {"scaled": [value / scale.per], "text": [metric.text(value)], "what": [what]}
            )
        )
        layers.append(
            rule.mark_rule(color=colours.muted, strokeDash=[5, 3]).encode(
                x=x, tooltip=[alt.Tooltip("what:N"), alt.Tooltip("text:N", title="shows")]
            )
        )
    chart = alt.layer(*layers, height=_ROW * len(shown) + X_AXIS, width="container")
    best = shown.iloc[0]
    told = f"{metric.title} of {plural(len(shown), 'implementation')}"
    return Described(chart, f"{told}; best is {best['implementation']} with {best['text']}.")


def sweep_chart(sizes: pd.DataFrame, metric: Metric, colours: Palette) -> Described:
    """Return one line an implementation over the bytes moved, on a logarithmic axis.

    `sizes`: implementation, bytes_moved, value in base units, label, launch_bound: such points are
    hollow. At most six implementations.
    """
    scale = metric.scale(sizes["value"])
    shown = sizes.assign(
        scaled=sizes["value"] / scale.per,
        text=_texts(sizes, metric),
        size_text=[units.size(int(v)) for v in sizes["bytes_moved"]],
    )
    names = sorted(set(shown["implementation"]))[:MAX_LINES]
    log_time = metric.name == "time"
    of_each = alt.Scale(domain=names, range=list(colours.lines[: len(names)]))
    base = alt.Chart(shown[shown["implementation"].isin(names)]).encode(
        x=alt.X(
            "bytes_moved:Q",
            title="Bytes moved",
            scale=alt.Scale(type="log", base=2, nice=False, padding=16),
            axis=alt.Axis(
                tickCount=8,
                labelExpr=_size_label(),
                labelOverlap="greedy",
            ),
        ),
        y=alt.Y(
            "scaled:Q",
            title=f"{metric.title} ({scale.unit})",
            scale=alt.Scale(type="log" if log_time else "linear", zero=not log_time),
            axis=alt.Axis(format="~f", tickCount=6),
        ),
        color=alt.Color("implementation:N", sort=names, legend=None, scale=of_each),
    )
    lines = base.mark_line(strokeWidth=1.6).encode(
        strokeDash=alt.StrokeDash(
            "implementation:N",
            sort=names,
            legend=None,
            scale=alt.Scale(domain=names, range=list(DASHES[: len(names)])),
        )
    )
    fill = alt.Fill("implementation:N", sort=names, legend=None, scale=of_each)
    points = _points(base, metric, colours, fill)
    chart = alt.layer(lines, points, height=300, width="container")
    return Described(
        chart,
        f"{metric.title} over bytes moved for {', '.join(names) or 'no implementation'}.",
        tuple(
            Entry(name, colour, dash=dash)
            for name, colour, dash in zip(names, colours.lines, DASHES, strict=False)
        ),
    )


def _points(base: alt.Chart, metric: Metric, colours: Palette, fill: alt.Fill) -> alt.Chart:
    """Return a point for each size, hollow where it is launch-bound."""
    points: alt.Chart = base.mark_point(size=20, strokeWidth=1.6, opacity=1).encode(
        fill=alt.condition(alt.datum["launch_bound"], alt.value(colours.background), fill),
        tooltip=[
            alt.Tooltip("label:N", title="case"),
            alt.Tooltip("size_text:N", title="bytes moved"),
            alt.Tooltip("text:N", title=metric.title.lower()),
        ],
    )
    return points


def _texts(rows: pd.DataFrame, metric: Metric) -> list[str]:
    """Return values with their unit, and the word for those that say nothing of the memory."""
    return [
        metric.text(value) + (f", {LAUNCH_BOUND}" if bound else "")
        for value, bound in zip(rows["value"], rows["launch_bound"], strict=True)
    ]


def _size_label() -> str:
    """Return a Vega expression that writes a number of bytes in binary units."""
    steps = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
    text = "format(datum.value, '~g') + ' B'"
    for unit, size in reversed(steps):
        text = f"datum.value >= {size} ? format(datum.value / {size}, '.3~g') + ' {unit}' : {text}"
    return text


def models_chart(rows: pd.DataFrame, colours: Palette) -> Described:
    """Return percent of theoretical peak per implementation and GPU model.

    `rows`: gpu_model, implementation, fraction of theoretical peak, text.
    """
    models = sorted(set(rows["gpu_model"]))
    shown = rows.assign(percent=rows["fraction"] * 100)
    names = list(
        shown.groupby("implementation", observed=True)["percent"]
        .max()
        .sort_values(ascending=False)
        .index
    )
    shapes = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")
    chart = (
        alt.Chart(shown)
        .mark_point(size=80, filled=True, opacity=0.95)
        .encode(
            x=alt.X(
                "percent:Q",
                title="% of theoretical peak",
                scale=alt.Scale(zero=True),
                axis=alt.Axis(tickCount=7),
            ),
            y=alt.Y("implementation:N", sort=names, title=None, axis=ROWS),
            color=alt.Color(
                "gpu_model:N",
                sort=models,
                legend=None,
                scale=alt.Scale(
                    domain=models,
                    range=[colours.lines[i % MAX_LINES] for i in range(len(models))],
                ),
            ),
            shape=alt.Shape(
                "gpu_model:N",
                sort=models,
                legend=None,
                scale=alt.Scale(
                    domain=models, range=[shapes[i % len(shapes)] for i in range(len(models))]
                ),
            ),
            tooltip=[
                alt.Tooltip("gpu_model:N", title="GPU model"),
                alt.Tooltip("implementation:N"),
                alt.Tooltip("text:N", title="of peak"),
            ],
        )
        .properties(height=_ROW * len(names) + X_AXIS, width="container")
    )
    return Described(
        chart,
        f"Percent of theoretical peak of {plural(len(names), 'implementation')} on "
        f"{', '.join(models) or 'no GPU'}.",
        tuple(
            Entry(model, colours.lines[i % MAX_LINES], shape=shapes[i % len(shapes)])
            for i, model in enumerate(models)
        ),
    )
