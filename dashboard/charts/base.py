"""What every chart shares: the pair of chart and sentence, the commit axis, limits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import altair as alt

from dashboard.charts.legend import Entry

# More marks than this slow the page; beyond it, the read layer aggregates and the page says so.
MAX_MARKS = 5_000
_TICKS = 10
# Streamlit fits axis and title into a chart's height: what they take, in pixels.
X_AXIS = 72


# The labels of rows, each a case, a side or an implementation: all of them, not clipped.
ROWS = alt.Axis(labelLimit=420, labelOverlap=False, ticks=False, domain=False)


# The height of a row whose name stands above its mark, and how far above, in pixels.
NAMED_ROW, _ABOVE = 34, 12
Chart = alt.Chart | alt.LayerChart | alt.FacetChart


def names_above(rows: alt.Chart, column: str, names: Sequence[str], colour: str) -> alt.Chart:
    """Return the name of each row as text above its mark, where any width has room for it."""
    chart: alt.Chart = rows.mark_text(align="left", dy=-_ABOVE, fontSize=11, color=colour).encode(
        y=alt.Y(f"{column}:N", sort=list(names), title=None, axis=None),
        x=alt.value(2),
        text=f"{column}:N",
    )
    return chart


@dataclass(frozen=True, slots=True)
class Described:
    """A chart, one sentence that says what it shows, for people who do not see it, and a legend."""

    chart: Chart
    alt: str
    legend: tuple[Entry, ...] = ()


def commit_axis(labels: Sequence[str], *, ticks: int = _TICKS) -> alt.Axis:
    """Return an axis over positions 0..n-1 whose labels are short commit ids.

    Only a few positions are labelled: every commit would be unreadable, and a long list of labels
    would travel with every chart.
    """
    step = max(1, -(-len(labels) // ticks))
    shown = list(range(len(labels) - 1, -1, -step))[::-1]
    names = json.dumps({str(i): labels[i] for i in shown})
    return alt.Axis(
        values=shown,
        labelExpr=f"{names}[toString(datum.value)]",
        labelFont="monospace",
        labelFontSize=11,
        labelOverlap="greedy",
        grid=False,
        title=None,
    )


def decades(low: float, high: float) -> list[float]:
    """Return round values for a logarithmic axis: powers of ten, and 2 and 5 in a short span."""
    first, last = floor(log10(low)), ceil(log10(high))
    steps = (1, 2, 5) if last - first <= 4 else (1,)
    return [
        m * 10.0**e for e in range(first, last + 1) for m in steps if low <= m * 10.0**e <= high
    ]


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 commit`, `3 commits`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
