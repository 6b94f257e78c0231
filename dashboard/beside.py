"""The tables of charts that have none below them: a click opens one beside its chart."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.charts.base import plural
from dashboard.metrics import Metric
from dashboard.tables import series_table
from tracker.yardsticks import LAUNCH_BOUND

_LABEL = "Table"
_QUARTILES = (
    *("Smallest (us)", "1st quartile (us)", "Median (us)", "3rd quartile (us)"),
    "Largest (us)",
)


def series(points: pd.DataFrame, *, key: str) -> None:
    """Draw the button of the table of a series chart."""
    with st.popover(_LABEL, type="tertiary"):
        series_table(points, key=key)


def sizes(rows: pd.DataFrame, metric: Metric, *, key: str) -> None:
    """Draw the button of the table of a chart over sizes: bytes moved, and a column a kernel.

    What is launch-bound is named; of it no share of a copy is shown.
    """
    scale = metric.scale(rows["value"])
    wide = _wide(rows.assign(value=rows["value"] / scale.per), "value")
    bound = _wide(rows, "launch_bound") > 0
    named = [_named(bound.loc[size], wide.loc[size].notna()) for size in wide.index]
    told = f"{metric.title} in {scale.unit} by bytes moved, {plural(wide.shape[1], 'column')}."
    shown = wide.mask(bound) if metric.name == "copy" else wide
    if any(named):
        shown = pd.concat([pd.Series(named, wide.index, name=LAUNCH_BOUND), shown], axis="columns")
    number = st.column_config.NumberColumn
    with st.popover(_LABEL, type="tertiary"):
        st.caption(f"{metric.title} ({scale.unit})")
        st.dataframe(
            shown.reset_index(),
            hide_index=True,
            key=key,
            placeholder="",
            alt=told,
            column_config={
                "bytes_moved": number("Bytes moved", format="%d"),
                LAUNCH_BOUND: st.column_config.TextColumn(LAUNCH_BOUND.capitalize(), width="small"),
                **{str(name): number(str(name), format="%.4g") for name in wide.columns},
            },
        )


def _named(bound: "pd.Series[bool]", known: "pd.Series[bool]") -> str:
    """Return which are launch-bound by name, or that all are of which anything is known."""
    return "all" if bound.equals(known) else ", ".join(bound.index[bound])


def _wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column by bytes moved and implementation."""
    return rows.pivot_table(index="bytes_moved", columns="implementation", values=column)


def models(rows: pd.DataFrame, *, key: str) -> None:
    """Draw the button of the table of a chart across GPU models: percent of the peak."""
    shown = rows.assign(percent=rows["fraction"] * 100)[["gpu_model", "implementation", "percent"]]
    with st.popover(_LABEL, type="tertiary"):
        st.dataframe(
            shown,
            hide_index=True,
            key=key,
            alt="Percent of the theoretical peak by GPU model and implementation.",
            column_config={
                "gpu_model": "GPU model",
                "implementation": "Implementation",
                "percent": st.column_config.NumberColumn("% of peak", format="%.1f"),
            },
        )


def distributions(times: pd.DataFrame, *, key: str) -> None:
    """Draw the button of the table of a chart of measurements: `side`, and `value` in seconds."""
    rows = [
        {
            "side": side,
            "count": len(part),
            **dict(zip(_QUARTILES, _quartiles_us(part), strict=True)),
        }
        for side, part in times.groupby("side", sort=False)
    ]
    number = st.column_config.NumberColumn
    with st.popover(_LABEL, type="tertiary"):
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key=key,
            alt="Measurements of both sides by their quartiles.",
            column_config={
                "side": "Side",
                "count": number("Measurements", format="%d"),
                **{name: number(name, format="%.3f") for name in _QUARTILES},
            },
        )


def _quartiles_us(part: pd.DataFrame) -> list[float]:
    times = part["value"].to_numpy(dtype=np.float64)
    return [float(value) * 1e6 for value in np.quantile(times, np.linspace(0, 1, 5))]
