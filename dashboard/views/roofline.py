"""Roofline: where each case of the newest run stands under the memory roofs of its GPU."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import data, exports, facts, filters, layout, newest, notices
from dashboard.charts.base import plural
from dashboard.charts.roofline import Roof, roofline_chart
from dashboard.columns import ROOFLINE_NAMES
from dashboard.filters import ALL, DTYPE, KERNEL
from dashboard.layout import Parameters, View
from dashboard.metrics import percent
from dashboard.newest import Newest
from dashboard.pages import ROOFLINE
from dashboard.tables import roofline_table
from dashboard.text import plain, short
from tracker import units
from tracker.queries import RunInfo

_DTYPE = replace(DTYPE, optional=False)


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        start = newest.choose(view)
        if not isinstance(start, Newest):
            return start
        run, found = start.run, start.results
        dtype = filters.choose_among(found["dtype"], _DTYPE, view.address, "Cases")
        found = found[found["dtype"] == dtype]
        kernel = filters.choose_among(found["kernel"], KERNEL, view.address, "Cases")
    rows = found if kernel == ALL else found[found["kernel"] == kernel]
    newest.tell(view, start.meant)
    _draw(view, run, rows)
    return {**start.parameters, DTYPE.key: dtype, KERNEL.key: kernel}


def roofs(rows: pd.DataFrame) -> list[Roof]:
    """Return the roofs that a run knows: theoretical, and the fastest copy that it measured."""
    found = []
    theoretical, copy = rows["theoretical_bytes_per_s"].max(), rows["copy_bytes_per_s"].max()
    if theoretical > 0:
        found.append(Roof("theoretical peak", float(theoretical), "memory clock and bus width"))
    if copy > 0:
        fastest = rows.sort_values("copy_bytes_per_s")["copy_source"].iloc[-1]
        found.append(Roof("fastest copy in this run", float(copy), plain(str(fastest), 80)))
    return found


def placed(rows: pd.DataFrame, found: list[Roof]) -> pd.DataFrame:
    """Return the cases that have a place: with a time, bytes and some arithmetic."""
    fit = rows[(rows["flop"] > 0) & (rows["bytes_moved"] > 0) & rows["median_s"].notna()]
    roof = found[-1].bytes_per_s if found else float("nan")
    return fit.assign(
        intensity=fit["flop"] / fit["bytes_moved"],
        flop_per_s=fit["flop"] / fit["median_s"],
        bandwidth_text=[units.bandwidth(v) for v in fit["bandwidth"]],
        attained=fit["bandwidth"] / roof,
        attained_text=[percent(v / roof) for v in fit["bandwidth"]],
        bytes_text=[units.size(int(v)) for v in fit["bytes_moved"]],
        flop_text=[f"{int(v):,}" for v in fit["flop"]],
    )


def _draw(view: View, run: RunInfo, rows: pd.DataFrame) -> None:
    found = roofs(rows)
    fit = placed(rows, found)
    if not found or not len(fit):
        notices.show(notices.no_roofline(), view.colours)
        return
    peak = rows["theoretical_flop_per_s"].max()
    known = float(peak) if peak > 0 else None
    layout.chart(roofline_chart(fit, found, known, view.colours), key="roofline")
    told = [f"{roof.name}: {units.bandwidth(roof.bytes_per_s)} ({roof.source})" for roof in found]
    if known is not None:
        told.append(f"peak {units.significant(known / 1e12, 3)} TFLOP/s")
    else:
        told.append("no FLOP peak is known, so no ridge point is drawn")
    if missing := len(rows) - len(fit):
        told.append(f"{plural(missing, 'case')} without arithmetic or time left out")
    facts.line(told, view.colours)
    roofline_table(fit, key="roofline-table")
    export = fit[list(ROOFLINE_NAMES)].rename(columns=ROOFLINE_NAMES)
    exports.button(
        "CSV",
        lambda: exports.csv(export),
        exports.file_name("roofline", short(run.sha), data.day(view.now)[:10]),
    )


if __name__ == "__main__":
    layout.draw(ROOFLINE, body)
