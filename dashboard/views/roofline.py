"""Roofline: where each case of the newest run stands under the memory roofs of its GPU."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import data, exports, facts, filters, layout, newest, notices
from dashboard.charts.base import plural
from dashboard.charts.roofline import roofline_chart
from dashboard.columns import ROOFLINE_NAMES
from dashboard.filters import ALL, DTYPE, KERNEL
from dashboard.layout import Parameters, View
from dashboard.metrics import percent
from dashboard.newest import Newest
from dashboard.pages import ROOFLINE
from dashboard.tables import roofline_table
from dashboard.text import plain, short
from tracker import roofline, units
from tracker.model import Peaks
from tracker.queries import RunInfo
from tracker.roofline import Roof
from tracker.yardsticks import LAUNCH_BOUND_MEANS

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
    known = rows.dropna(subset=["copy_bytes_per_s"]).sort_values("copy_bytes_per_s")
    source = plain(str(known["copy_source"].iloc[-1]), 80) if len(known) else None
    peaks = Peaks(
        theoretical_bytes_per_s=_largest(rows["theoretical_bytes_per_s"]),
        copy_bytes_per_s=_largest(rows["copy_bytes_per_s"]),
        copy_source=source,
        theoretical_flop_per_s=_largest(rows["theoretical_flop_per_s"]),
    )
    return list(roofline.roofs(peaks, copy="fastest copy in this run"))


def _largest(values: pd.Series) -> float | None:
    largest = float(values.max())
    return largest if largest > 0 else None


def placed(rows: pd.DataFrame, roof: Roof) -> pd.DataFrame:
    """Return the cases that have a place under a roof: with a time, bytes and some arithmetic."""
    fit = rows[(rows["flop"] > 0) & (rows["bytes_moved"] > 0) & rows["median_s"].notna()]
    points = [
        roofline.place(seconds=time, bytes_moved=moved, flop=flop, roof=roof)
        for time, moved, flop in zip(fit["median_s"], fit["bytes_moved"], fit["flop"], strict=True)
    ]
    return fit.assign(
        intensity=[point.intensity for point in points],
        flop_per_s=[point.flop_per_s for point in points],
        bandwidth_text=[units.bandwidth(v) for v in fit["bandwidth"]],
        attained=[point.fraction for point in points],
        bound_by=[
            roofline.bound_by(roof, point, launch=launch) or ""
            for point, launch in zip(points, fit["launch_bound"], strict=True)
        ],
        attained_text=[percent(point.fraction) for point in points],
        bytes_text=[units.size(int(v)) for v in fit["bytes_moved"]],
        flop_text=[f"{int(v):,}" for v in fit["flop"]],
    )


def _draw(view: View, run: RunInfo, rows: pd.DataFrame) -> None:
    found = roofs(rows)
    fit = placed(rows, found[-1]) if found else rows[:0]
    if not len(fit):
        notices.show(notices.no_roofline(), view.colours)
        return
    drawn = fit[~fit["launch_bound"]]
    layout.chart(roofline_chart(drawn, found, view.colours), key="roofline")
    told = [f"{roof.name}: {units.bandwidth(roof.bytes_per_s)} ({roof.source})" for roof in found]
    if (peak := found[-1].flop_per_s) is not None:
        told.append(f"peak {units.significant(peak / 1e12, 3)} TFLOP/s")
    else:
        told.append("no FLOP peak is known, so no ridge point is drawn")
    if missing := len(rows) - len(fit):
        told.append(f"{plural(missing, 'case')} without arithmetic or time left out")
    facts.line(told, view.colours)
    if bound := len(fit) - len(drawn):
        left_out = f"{plural(bound, 'case')} bound by launch: in the table, not in the chart"
        facts.line((left_out, LAUNCH_BOUND_MEANS), view.colours)
    roofline_table(fit, key="roofline-table")
    export = fit[list(ROOFLINE_NAMES)].rename(columns=ROOFLINE_NAMES)
    exports.button(
        "CSV",
        lambda: exports.csv(export),
        exports.file_name("roofline", short(run.sha), data.day(view.now)[:10]),
    )


if __name__ == "__main__":
    layout.draw(ROOFLINE, body)
