"""Tables: which columns, under which headings, in which units, and the same rows for export."""

from typing import Any

import pandas as pd
import streamlit as st

from dashboard.palette import OUTCOMES

_PILLS = [outcome.text for outcome in OUTCOMES.values()]
_PILL_COLOURS = [outcome.pill for outcome in OUTCOMES.values()]


def verdict_column(heading: str = "Verdict") -> Any:
    """Return the column of a verdict: a list of one text, shown on its colour."""
    return st.column_config.MultiselectColumn(
        heading, options=_PILLS, color=_PILL_COLOURS, width="small"
    )


def series_export(points: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a series for a file, in base units."""
    names = {
        "line": "case",
        "full_sha": "commit",
        "run_id": "run_id",
        "measured": "started_utc",
        "median_s": "median_s",
        "bandwidth_bytes_per_s": "bandwidth_bytes_per_s",
        "copy_fraction": "copy_fraction",
        "count": "measurements",
        "status": "status",
        "note": "note",
    }
    return points[list(names)].rename(columns=names)


def series_table(points: pd.DataFrame, *, key: str) -> None:
    """Draw the table that belongs to a series chart, newest first."""
    shown = points.iloc[::-1].assign(
        gbps=points["bandwidth_bytes_per_s"] / 1e9,
        us=points["median_s"] * 1e6,
        copy=points["copy_fraction"] * 100,
    )
    columns = ["sha", "measured", "line", "gbps", "us", "copy", "count", "status", "note"]
    number = st.column_config.NumberColumn
    st.dataframe(
        shown[[*columns, "author", "subject"]],
        hide_index=True,
        key=key,
        alt="The points of the chart above, newest first.",
        column_config={
            "sha": "Commit",
            "measured": "Measured (UTC)",
            "line": "Case",
            "gbps": number("GB/s", format="%.1f"),
            "us": number("Time (us)", format="%.3f"),
            "copy": number("% of copy", format="%.1f"),
            "count": number("Measurements", format="%d"),
            "status": "Status",
            "note": "Note",
            "author": "Author",
            "subject": "Subject",
        },
    )
