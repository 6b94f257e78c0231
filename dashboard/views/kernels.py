"""Kernels: every implementation of one kernel side by side, on one GPU and across GPU models."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import beside, data, exports, facts, filters, layout, newest
from dashboard.charts.base import plural
from dashboard.charts.ladder import ladder_chart, models_chart, sweep_chart
from dashboard.columns import LADDER_NAMES
from dashboard.filters import DTYPE, KERNEL, Facet
from dashboard.layout import Parameters, View
from dashboard.metrics import METRICS, Metric, percent
from dashboard.newest import Newest
from dashboard.pages import KERNELS
from dashboard.palette import MAX_LINES
from dashboard.tables import ladder_table
from dashboard.text import short
from tracker.queries import RunInfo
from tracker.yardsticks import LAUNCH_BOUND, LAUNCH_BOUND_MEANS

_SHAPE = Facet("shape", "Shape", optional=False, width=300)
_COLUMNS = {"bandwidth": "bandwidth", "time": "median_s", "copy": "copy_fraction"}
# What the others are compared with: the plain form that a user would write.
_PLAIN = "torch"
_COPY, _SUM = "a copy of the same size", "a sum of two arrays of the same size"
_KERNEL, _DTYPE = replace(KERNEL, optional=False), replace(DTYPE, optional=False)


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        start = newest.choose(view)
        if not isinstance(start, Newest):
            return start
        run, found = start.run, start.results
        kernel = filters.choose_among(found["kernel"], _KERNEL, view.address, "Cases")
        found = found[found["kernel"] == kernel]
        dtype = filters.choose_among(found["dtype"], _DTYPE, view.address, "Cases")
        found = found[found["dtype"] == dtype]
        shapes = _shapes(found)
        shape = filters.choose_named(_SHAPE, shapes, view.address)
        metric = METRICS[filters.pick("Metric", "metric", list(METRICS), view.address)]
    newest.tell(view, start.meant)
    _ladder(view, run, found[found["shape"] == shape], metric)
    _sweep(view, found, metric)
    _models(view, start.branch, kernel, dtype, shape)
    return {
        **start.parameters,
        KERNEL.key: kernel,
        DTYPE.key: dtype,
        _SHAPE.key: shape,
        "metric": metric.name,
    }


def _shapes(found: pd.DataFrame) -> list[str]:
    """Return the shapes with most implementations first, among those the largest."""
    order = found.groupby("shape").agg(
        several=("implementation", "nunique"), moved=("bytes_moved", "max")
    )
    return [str(name) for name in order.sort_values(["several", "moved"], ascending=False).index]


def _ladder(view: View, run: RunInfo, rungs: pd.DataFrame, metric: Metric) -> None:
    values = rungs.assign(value=rungs[_COLUMNS[metric.name]])
    known = values.dropna(subset=["value"])
    st.subheader("Side by side", anchor=False)
    if len(known):
        reference = _reference(known, metric)
        layout.chart(ladder_chart(known, metric, view.colours, reference), key="ladder")
        if reference is not None:
            what, value = reference
            st.caption(f"Dashed: {what} in the same run, {metric.text(value)}.")
    plain_s = rungs.loc[rungs["implementation"] == _PLAIN, "median_s"]
    base = float(plain_s.iloc[0]) if len(plain_s) else float("nan")
    table = values.assign(
        peak=values["bandwidth"] / values["theoretical_bytes_per_s"],
        speedup=base / values["median_s"],
    ).sort_values("median_s")
    ladder_table(table, _PLAIN, key="ladder-table")
    export = table[list(LADDER_NAMES)].rename(columns=LADDER_NAMES)
    exports.button(
        "CSV",
        lambda: exports.csv(export),
        exports.file_name("kernels", short(run.sha), data.day(view.now)[:10]),
    )


def _reference(rungs: pd.DataFrame, metric: Metric) -> tuple[str, float] | None:
    """Return what the implementations of one case are measured against, and its value.

    Of what moves three arrays a sum of two is the fairer yardstick than a copy.
    """
    if metric.name == "copy":
        return _COPY, 1.0
    if metric.name == "time":
        what, value = "an empty kernel", rungs["empty_s"].median()
    elif rungs["of_sum"].notna().any():
        what, value = _SUM, rungs["two_read_bytes_per_s"].median()
    else:
        what, value = _COPY, rungs["copy_bytes_per_s"].median()
    return (what, float(value)) if value > 0 else None


def _sweep(view: View, found: pd.DataFrame, metric: Metric) -> None:
    aligned = found[~found["shape"].str.contains("in+", regex=False)]
    sizes = aligned.assign(value=aligned[_COLUMNS[metric.name]]).dropna(subset=["value"])
    if sizes["bytes_moved"].nunique() < 2:
        return
    st.subheader("Over sizes", anchor=False)
    names = sorted(set(sizes["implementation"]))
    layout.chart(sweep_chart(sizes, metric, view.colours), key="sweep")
    beside.sizes(sizes, metric, key="sweep-table")
    told = ["aligned shapes only"]
    if len(names) > MAX_LINES:
        told.append(f"{MAX_LINES} of {len(names)} implementations")
    if sizes["launch_bound"].any():
        told.append(f"hollow: {LAUNCH_BOUND}, {LAUNCH_BOUND_MEANS}")
    facts.line(told, view.colours)


def _models(view: View, branch: str | None, kernel: str, dtype: str, shape: str) -> None:
    parts = []
    for model in data.models(view.snapshot):
        run = data.newest(view.snapshot, model.name, branch)
        if run is None:
            continue
        found = data.latest(view.snapshot, run.run_id)
        same = found[
            (found["kernel"] == kernel) & (found["dtype"] == dtype) & (found["shape"] == shape)
        ]
        parts.append(same.assign(gpu_model=model.name))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.assign(fraction=rows["bandwidth"] / rows["theoretical_bytes_per_s"])
    known = rows.dropna(subset=["fraction"])
    if known["gpu_model"].nunique() < 2:
        return
    st.subheader("Across GPU models", anchor=False)
    rows = known[~known["launch_bound"]]
    if len(rows):
        rows = rows.assign(text=[percent(value) for value in rows["fraction"]])
        layout.chart(models_chart(rows, view.colours), key="models")
        beside.models(rows, key="models-table")
    if bound := len(known) - len(rows):
        left_out = f"{bound} of {plural(len(known), 'result')} left out: {LAUNCH_BOUND}"
        facts.line((f"{left_out}, {LAUNCH_BOUND_MEANS}",), view.colours)


if __name__ == "__main__":
    layout.draw(KERNELS, body)
