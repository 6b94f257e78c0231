"""Correctness: which cases were checked, how close they came to their bounds, what was refused."""

import pandas as pd
import streamlit as st

from dashboard import data, exports, facts, filters, layout, newest
from dashboard.charts.base import plural
from dashboard.charts.ratio import MAX_ROWS, ratio_chart
from dashboard.columns import CORRECTNESS_NAMES
from dashboard.filters import ALL, KERNEL
from dashboard.layout import Parameters, View
from dashboard.newest import Newest
from dashboard.pages import CORRECTNESS
from dashboard.tables import correctness_table
from dashboard.text import short
from tracker.queries import RunInfo

_SHOWN = ("all", "refused", "not checked")


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        start = newest.choose(view)
        if not isinstance(start, Newest):
            return start
        run, found = start.run, start.results
        kernel = filters.choose_among(found["kernel"], KERNEL, view.address, "Cases")
        shown = filters.pick("Show", "show", list(_SHOWN), view.address)
    newest.tell(view, start.meant)
    rows = found if kernel == ALL else found[found["kernel"] == kernel]
    facts.counts(_counts(view, rows))
    _draw(view, run, _kept(rows, shown))
    return {**start.parameters, KERNEL.key: kernel, "show": shown}


def _refused(rows: pd.DataFrame) -> "pd.Series[bool]":
    return rows["checked"] & ~rows["passed"]


def _kept(rows: pd.DataFrame, shown: str) -> pd.DataFrame:
    if shown == "refused":
        return rows[_refused(rows) | rows["status"].isin(["incorrect", "error"])]
    return rows[~rows["checked"]] if shown == "not checked" else rows


def _counts(view: View, rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    refused, unchecked = int(_refused(rows).sum()), int((~rows["checked"]).sum())
    passed = int((rows["checked"] & rows["passed"]).sum())
    colours = view.colours
    return [
        (f"! {refused}", "refused", colours.regression if refused else colours.muted),
        (f"? {unchecked}", "not checked", colours.text if unchecked else colours.muted),
        (f"= {passed}", "within bounds", colours.unchanged),
    ]


def _draw(view: View, run: RunInfo, rows: pd.DataFrame) -> None:
    if not len(rows):
        st.caption("No case of this run is like that.")
        return
    if rows["worst_ratio"].notna().any():
        layout.chart(ratio_chart(rows, view.colours), key="ratios")
        if len(rows) > MAX_ROWS:
            told = plural(len(rows), "case")
            st.caption(f"The chart shows the {MAX_ROWS} closest to their bounds of {told}.")
    correctness_table(rows, key="correctness-table")
    export = rows[list(CORRECTNESS_NAMES)].rename(columns=CORRECTNESS_NAMES)
    exports.button(
        "CSV",
        lambda: exports.csv(export),
        exports.file_name("correctness", short(run.sha), data.day(view.now)[:10]),
    )


if __name__ == "__main__":
    layout.draw(CORRECTNESS, body)
