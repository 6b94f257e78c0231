"""Changes with their intervals as small bars, one row a case, worst first."""

import altair as alt
import pandas as pd

from dashboard.charts.base import NAMED_ROW, X_AXIS, Described, names_above, plural
from dashboard.metrics import change
from dashboard.palette import MARKS, Palette
from tracker.model import VerdictKind

MAX_ROWS = 40
_TITLE = "Change of bandwidth (%), with interval"


def effect_chart(rows: pd.DataFrame, colours: Palette) -> Described:
    """Return intervals of the relative change of bandwidth; left of zero is slower.

    `rows`: label, kind, effect, low, high (fractions), in the order to show; those without an
    effect are left out, and so are those after the first 40.
    """
    known = rows.dropna(subset=["effect"]).head(MAX_ROWS)
    kinds = [str(kind) for kind in VerdictKind]
    shown = known.assign(
        percent=known["effect"] * 100,
        low_percent=known["low"] * 100,
        high_percent=known["high"] * 100,
        text=[change(value) for value in known["effect"]],
        interval=[
            f"{change(low)} to {change(high)}"
            for low, high in zip(known["low"], known["high"], strict=True)
        ],
    )
    names = list(shown["label"])
    y = alt.Y("label:N", sort=names, title=None, axis=None)
    outlines = [colours.verdict(VerdictKind(kind)) for kind in kinds]
    fills = [
        colour if MARKS[VerdictKind(kind)].filled else colours.background
        for kind, colour in zip(kinds, outlines, strict=True)
    ]
    colour = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=outlines))
    tooltip = [
        alt.Tooltip("label:N", title="case"),
        alt.Tooltip("kind:N", title="verdict"),
        alt.Tooltip("text:N", title="change"),
        alt.Tooltip("interval:N", title="interval"),
    ]
    base = alt.Chart(shown)
    bars = base.mark_rule(strokeWidth=5, opacity=0.35).encode(
        y=y, x=alt.X("low_percent:Q", title=_TITLE), x2="high_percent:Q", color=colour
    )
    marks = base.mark_point(size=60, opacity=1, strokeWidth=1.8).encode(
        y=y,
        x=alt.X("percent:Q", title=_TITLE, axis=alt.Axis(tickCount=7, format="+~f")),
        stroke=alt.Stroke("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=outlines)),
        fill=alt.Fill("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=fills)),
        shape=alt.Shape(
            "kind:N",
            legend=None,
            scale=alt.Scale(domain=kinds, range=[MARKS[VerdictKind(kind)].shape for kind in kinds]),
        ),
        tooltip=tooltip,
    )
    zero = (
        alt.Chart(pd.DataFrame({"zero": [0.0]}))
        .mark_rule(color=colours.muted, strokeWidth=1)
        .encode(x="zero:Q")
    )
    words = names_above(base, "label", names, colours.text)
    chart = alt.layer(
        zero, words, bars, marks, height=NAMED_ROW * len(shown) + X_AXIS, width="container"
    )
    return Described(chart, _describe(shown))


def _describe(shown: pd.DataFrame) -> str:
    if not len(shown):
        return "No change with an interval to show."
    worst = shown.sort_values("effect").iloc[0]
    counts = shown["kind"].value_counts()
    told = ", ".join(f"{counts[str(kind)]} {kind}" for kind in VerdictKind if str(kind) in counts)
    return (
        f"Change of bandwidth of {plural(len(shown), 'case')}: {told}; "
        f"lowest is {worst['label']} with {worst['text']} ({worst['interval']})."
    )
