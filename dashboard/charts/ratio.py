"""How close each case came to its error bound, on one logarithmic axis with the bound as a rule."""

import altair as alt
import pandas as pd

from dashboard.charts.base import NAMED_ROW, X_AXIS, Described, decades, names_above, plural
from dashboard.palette import Palette

MAX_ROWS = 25


def ratio_chart(rows: pd.DataFrame, colours: Palette) -> Described:
    """Return the worst error over its bound of each case, the closest to failing first.

    `rows`: label, worst_ratio, passed. Exact results (ratio 0) stand at the left edge; at most 25
    rows are drawn.
    """
    known = rows.dropna(subset=["worst_ratio"])
    shown = known.sort_values("worst_ratio", ascending=False, kind="stable").head(MAX_ROWS)
    positive = shown.loc[shown["worst_ratio"] > 0, "worst_ratio"]
    floor = min(float(positive.min()) if len(positive) else 0.1, 0.1) / 3
    shown = shown.assign(
        ratio=shown["worst_ratio"].clip(lower=floor),
        text=[f"{value:.3g}" for value in shown["worst_ratio"]],
        told=["passed" if passed else "refused" for passed in shown["passed"]],
    )
    top = max(2.0, float(shown["ratio"].max()) * 2 if len(shown) else 2.0)
    scale = alt.Scale(type="log", domain=[floor, top], nice=False)
    y = alt.Y("label:N", sort=list(shown["label"]), title=None, axis=None)
    marks = (
        alt.Chart(shown)
        .mark_point(size=55, strokeWidth=1.8, filled=True, opacity=1)
        .encode(
            y=y,
            x=alt.X(
                "ratio:Q",
                title="Worst error over its bound",
                scale=scale,
                axis=alt.Axis(format="~g", values=decades(floor, top)),
            ),
            color=alt.Color(
                "told:N",
                legend=None,
                scale=alt.Scale(
                    domain=["passed", "refused"], range=[colours.unchanged, colours.regression]
                ),
            ),
            shape=alt.Shape(
                "told:N",
                legend=None,
                scale=alt.Scale(domain=["passed", "refused"], range=["circle", "cross"]),
            ),
            tooltip=[
                alt.Tooltip("label:N", title="case"),
                alt.Tooltip("text:N", title="error over bound"),
                alt.Tooltip("told:N", title="outcome"),
            ],
        )
    )
    bound = (
        alt.Chart(pd.DataFrame({"bound": [1.0]}))
        .mark_rule(color=colours.text, strokeDash=[5, 3])
        .encode(x=alt.X("bound:Q", title="Worst error over its bound", scale=scale))
    )
    words = names_above(alt.Chart(shown), "label", list(shown["label"]), colours.text)
    chart = alt.layer(
        bound, words, marks, height=NAMED_ROW * len(shown) + X_AXIS, width="container"
    )
    return Described(chart, _describe(shown))


def _describe(shown: pd.DataFrame) -> str:
    if not len(shown):
        return "No case was checked against a bound."
    worst = shown.iloc[0]
    failed = int((shown["told"] == "refused").sum())
    return (
        f"Worst error over its bound of {plural(len(shown), 'case')}, {failed} refused; "
        f"the closest to failing is {worst['label']} with {worst['text']}."
    )
