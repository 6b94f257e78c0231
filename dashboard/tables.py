"""Tables: which columns, under which headings, in which units, and the same rows for export."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.glossary import WORDS
from dashboard.metrics import certainty, change
from dashboard.palette import OUTCOMES
from dashboard.text import ABSENT, short
from tracker import units
from tracker.yardsticks import LAUNCH_BOUND

# A list of runs longer than this scrolls inside so many pixels: below it stands the chosen run.
_ROWS, _HIGHEST = 7, 300
_PILLS = [outcome.text for outcome in OUTCOMES.values()]
_PILL_COLOURS = [outcome.pill for outcome in OUTCOMES.values()]


def verdict_column(heading: str = "Verdict", *, width: int = 90, states: Sequence[str] = ()) -> Any:
    """Return the column of a verdict: a list of texts, its own on its colour, `states` on grey."""
    return st.column_config.MultiselectColumn(
        heading,
        options=[*_PILLS, *states],
        color=[*_PILL_COLOURS, *["gray"] * len(states)],
        width=width,
    )


def series_table(points: pd.DataFrame, *, key: str) -> None:
    """Draw the table that belongs to a series chart, newest first."""
    newest_first = points.sort_values("position", ascending=False, kind="stable")
    shown = newest_first.assign(
        gbps=points["bandwidth_bytes_per_s"] / 1e9,
        us=points["median_s"] * 1e6,
        copy=_percent(points, "copy_fraction"),
        **_rare(points),
    )
    columns = _with_rare(shown, "sha", "measured", "line", "gbps", "us", "copy")
    columns += ["status", "count", "note"]
    number = st.column_config.NumberColumn
    st.dataframe(
        shown[[*columns, "author", "subject"]],
        hide_index=True,
        key=key,
        placeholder="",
        alt="The points of the chart above, newest first.",
        column_config={
            "sha": "Commit",
            "measured": "Measured (UTC)",
            "line": "Case",
            "gbps": number("GB/s", format="%.1f"),
            "us": number("Time (us)", format="%.3f"),
            "copy": number("% of copy", format="%.1f"),
            **_rare_headings(),
            "count": number("Measurements", format="%d"),
            "status": "Status",
            "note": "Note",
            "author": "Author",
            "subject": "Subject",
        },
    )


def verdict_table(rows: pd.DataFrame, *, key: str) -> int:
    """Draw verdicts and return the place of the selected row, the first without a selection."""
    shown = pd.DataFrame(
        {
            "verdict": [[OUTCOMES[name].text] for name in rows["outcome"]],
            "change": [shown_change(value) for value in rows["effect"]],
            "interval": [
                ABSENT if isnan(low) else f"{change(low)} to {change(high)}"
                for low, high in zip(rows["low"], rows["high"], strict=True)
            ],
            "case": rows["label"].to_list(),
            "was": [shown_rate(value) for value in rows["base_bandwidth"]],
            "now": [
                shown_rate(value) + (f", {LAUNCH_BOUND}" if bound else "")
                for value, bound in zip(rows["head_bandwidth"], rows["launch_bound"], strict=True)
            ],
            "sure": [certainty(value) for value in rows["p_value"]],
            "reason": rows["reason"].to_list(),
        }
    )
    event = st.dataframe(
        shown,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        alt="Verdicts case by case, the surest first.",
        column_config={
            "verdict": verdict_column(),
            "change": st.column_config.TextColumn("Change", alignment="right"),
            "interval": "Interval",
            "case": "Case",
            "was": "Base",
            "now": "Head",
            "sure": "Certainty",
            "reason": st.column_config.TextColumn("Reason", width="large"),
        },
    )
    return selected(event)


def shown_change(value: float) -> str:
    """Return a relative change, a dash where there is none."""
    return ABSENT if isnan(value) else change(value)


def shown_rate(value: float) -> str:
    """Return a bandwidth, a dash where there is none."""
    return ABSENT if isnan(value) else units.bandwidth(value)


def correctness_table(rows: pd.DataFrame, *, key: str) -> None:
    """Draw what was checked, the refused ones first."""
    order = rows.sort_values(["passed", "worst_ratio"], ascending=[True, False], kind="stable")
    number = st.column_config.NumberColumn
    texts = ["detail"] if (rows["detail"] != "").any() else []
    st.dataframe(
        order[["label", "status", "checked", "worst_ratio", "worst_error", "bound", *texts]],
        hide_index=True,
        key=key,
        alt="Every case with its worst error and bound, refused ones first.",
        column_config={
            "label": "Case",
            "status": "Status",
            "checked": "Checked",
            "worst_ratio": number("Error / bound", format="%.3g"),
            "worst_error": number("Worst error", format="%.3g"),
            "bound": number("Bound", format="%.3g"),
            "detail": st.column_config.TextColumn("Detail", width="large"),
        },
    )


def roofline_table(fit: pd.DataFrame, *, key: str) -> None:
    """Draw the cases of a roofline, the farthest below the roof first, launch-bound ones last."""
    number = st.column_config.NumberColumn
    shown = fit.assign(
        gbps=fit["bandwidth"] / 1e9,
        gflops=fit["flop_per_s"] / 1e9,
        of_roof=_percent(fit, "attained"),
        us=fit["median_s"] * 1e6,
        empty=fit["empty_s"] * 1e6,
    ).sort_values("of_roof")
    columns = ["label", "of_roof"]
    columns += ["bound_by"] if (shown["bound_by"] != "").any() else []
    columns += _with_rare(shown, "us", "gbps", "intensity", "gflops", "bytes_text", "flop_text")
    st.dataframe(
        shown[columns],
        hide_index=True,
        key=key,
        placeholder="",
        alt="The cases of the roofline, the farthest below the roof first.",
        column_config={
            "label": "Case",
            "of_roof": number("% of roof", format="%.1f"),
            "bound_by": "Bound by",
            "us": number("Time (us)", format="%.3f"),
            **_rare_headings(),
            "gbps": number("GB/s", format="%.1f"),
            "intensity": number("FLOP/byte", format="%.4f"),
            "gflops": number("GFLOP/s", format="%.1f"),
            "bytes_text": st.column_config.TextColumn("Bytes moved", alignment="right"),
            "flop_text": st.column_config.TextColumn("FLOP", alignment="right"),
        },
    )


def ladder_table(rungs: pd.DataFrame, plain_name: str, *, key: str) -> None:
    """Draw the implementations of one case, the fastest first."""
    number = st.column_config.NumberColumn
    shown = rungs.assign(
        us=rungs["median_s"] * 1e6,
        gbps=rungs["bandwidth"] / 1e9,
        copy=_percent(rungs, "copy_fraction"),
        of_peak=_percent(rungs, "peak"),
        **_rare(rungs),
    )
    columns = _with_rare(shown, "implementation", "us", "gbps", "copy", "of_peak", "speedup")
    columns += ["status"]
    columns += ["compile_s"] if shown["compile_s"].notna().any() else []
    columns += ["warnings"] if (shown["warnings"] != "").any() else []
    st.dataframe(
        shown[columns],
        hide_index=True,
        key=key,
        placeholder="",
        alt="The implementations of one case, the fastest first.",
        column_config={
            "implementation": "Implementation",
            "us": number("Time (us)", format="%.3f"),
            "gbps": number("GB/s", format="%.1f"),
            "copy": number("% of copy", format="%.1f"),
            **_rare_headings(),
            "of_peak": number("% of peak", format="%.1f"),
            "speedup": number(f"Speed-up over {plain_name}", format="%.2f"),
            "compile_s": number("Compile (s)", format="%.2f"),
            "status": "Status",
            "warnings": "Warnings",
        },
    )


def run_table(rows: pd.DataFrame, *, key: str) -> int | None:
    """Draw runs and return the place of the selected row, None without a selection."""
    event = st.dataframe(
        rows,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        height=_HIGHEST if len(rows) > _ROWS else "auto",
        alt="Runs, newest first.",
        column_config={
            "sha": "Commit",
            "started": "Started (UTC)",
            "gpu": "GPU model",
            "branch": "Branch",
            "subject": st.column_config.TextColumn("Subject", width="medium"),
            "author": "Author",
            "results": "Results",
            "statuses": "Statuses",
            "state": "State",
            "device": "Device",
        },
    )
    rows_selected = event["selection"]["rows"]
    return int(rows_selected[0]) if rows_selected else None


def result_table(rows: pd.DataFrame, *, key: str) -> None:
    """Draw the results of a run in the order of its record."""
    number = st.column_config.NumberColumn
    shown = rows.assign(
        us=rows["median_s"] * 1e6,
        gbps=rows["bandwidth"] / 1e9,
        copy=_percent(rows, "copy_fraction"),
        **_rare(rows),
    )
    columns = _with_rare(shown, "label", "status", "us", "gbps", "copy", "count")
    texts = [name for name in ("detail", "warnings") if (rows[name] != "").any()]
    st.dataframe(
        shown[[*columns, *texts]],
        hide_index=True,
        key=key,
        placeholder="",
        alt="Every result of the run.",
        column_config={
            "label": "Case",
            "status": "Status",
            "us": number("Time (us)", format="%.3f"),
            "gbps": number("GB/s", format="%.1f"),
            "copy": number("% of copy", format="%.1f"),
            **_rare_headings(),
            "count": number("Measurements", format="%d"),
            "detail": "Detail",
            "warnings": "Warnings",
        },
    )


def _percent(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return a share in percent, none of what is launch-bound: there it says nothing."""
    return (rows[column] * 100).mask(rows["launch_bound"])


def _rare(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Return what stands beside some times only: an empty kernel's, and the share of a sum."""
    of_sum = {"sum": _percent(rows, "of_sum")} if "of_sum" in rows else {}
    return {"empty": rows["empty_s"] * 1e6, **of_sum}


def _with_rare(shown: pd.DataFrame, *columns: str) -> list[str]:
    """Return the columns with the rare ones that any row has, each behind what it stands beside."""
    behind = {"us": "empty", "copy": "sum"}
    found = []
    for name in columns:
        found.append(name)
        rare = behind.get(name, "")
        if rare in shown and shown[rare].notna().any():
            found.append(rare)
    return found


def _rare_headings() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "empty": number("Empty (us)", format="%.2f", help=WORDS["empty kernel"]),
        "sum": number("% of sum", format="%.1f", help=WORDS["fraction of sum"]),
    }


def selected(event: Any) -> int:
    """Return the place of a table's selected row, the first without a selection."""
    rows = event["selection"]["rows"]
    return int(rows[0]) if rows else 0


def group_table(groups: pd.DataFrame, *, key: str) -> int:
    """Draw groups of changes and return the place of the selected one, the first without one."""
    shown = pd.DataFrame(
        {
            "verdict": [[OUTCOMES[kind].text] for kind in groups["kind"]],
            "kernel": groups["kernel"],
            "cases": groups["cases"],
            "change": [shown_change(value) for value in groups["effect"]],
            "sure": [certainty(value) for value in groups["p_value"]],
            "range": [
                f"{short(previous)} to {short(sha)}"
                for previous, sha in zip(groups["previous_sha"], groups["sha"], strict=True)
            ],
            "subject": groups["subject"],
            "author": groups["author"],
            "measured": [when[:10] for when in groups["measured"]],
            "states": groups["states"],
        }
    )
    event = st.dataframe(
        shown,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        alt="Change points by commit range and kernel, the largest first.",
        column_config={
            "verdict": verdict_column("Change"),
            "kernel": "Kernel",
            "cases": "Cases",
            "change": st.column_config.TextColumn("Largest", alignment="right"),
            "sure": "Certainty",
            "range": "Commits",
            "subject": st.column_config.TextColumn("Subject", width="medium"),
            "author": "Whose",
            "measured": "On",
            "states": "State",
        },
    )
    return selected(event)


def change_table(members: pd.DataFrame, *, key: str) -> int:
    """Draw the changes of a group and return the place of the selected one."""
    shown = pd.DataFrame(
        {
            "change": [shown_change(value) for value in members["effect"]],
            "case": members["label"],
            "was": [shown_rate(value) for value in members["before"]],
            "now": [shown_rate(value) for value in members["after"]],
            "sure": [certainty(value) for value in members["p_value"]],
            "state": members["state"],
            "note": members["note"],
        }
    )
    event = st.dataframe(
        shown,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        alt="The changes of this commit range, case by case.",
        column_config={
            "change": st.column_config.TextColumn("Change", alignment="right"),
            "case": "Case",
            "was": "Before",
            "now": "After",
            "sure": "Certainty",
            "state": "State",
            "note": "Note",
        },
    )
    return selected(event)


def log_table(entries: pd.DataFrame, *, key: str) -> None:
    """Draw what people said, the newest first."""
    st.dataframe(
        entries[["at", "author", "state", "note", "case"]],
        hide_index=True,
        key=key,
        alt="What people said of these changes, the newest first.",
        column_config={
            "at": "When",
            "author": "Who",
            "state": "State",
            "note": st.column_config.TextColumn("Note", width="large"),
            "case": "Case",
        },
    )
