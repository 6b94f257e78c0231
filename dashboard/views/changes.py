"""Changes: every change point of the window with its state, and triage where it is allowed."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard import changes, copying, data, details, exports, facts, filters, layout
from dashboard.columns import CHANGE_NAMES
from dashboard.commands import bisect
from dashboard.details import Focus
from dashboard.filters import ALL, BRANCH, GPU, KERNEL, Facet
from dashboard.history import Window
from dashboard.layout import Parameters, View
from dashboard.pages import CHANGES
from dashboard.session import triage_allowed
from dashboard.tables import change_table, group_table, log_table
from dashboard.text import short
from dashboard.triage import form

_STATE = Facet("state", "State")
_OPEN = "open"


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gpu = filters.choose_model(data.models(view.snapshot), view.address)
        branch = filters.choose_branch(data.branches(view.snapshot, gpu), view.address)
        unit, number = filters.window(view.address)
        found = changes.found(view.snapshot, gpu, branch, unit, number)
        kernel = filters.choose_among(found["kernel"], KERNEL, view.address, "Changes")
        state = filters.choose_named(_STATE, [ALL, _OPEN, *changes.STATES], view.address)
    rows = found if kernel == ALL else found[found["kernel"] == kernel]
    kept = _kept(rows, state)
    if hidden := len(rows) - len(kept):
        st.caption(f"{len(kept)} of {len(rows)} changes shown; {hidden} in other states.")
    if len(kept):
        _groups(view, kept.reset_index(drop=True), gpu, branch, Window(unit, number))
    else:
        st.caption("No change in this window.")
    return {
        GPU.key: gpu,
        BRANCH.key: branch or ALL,
        KERNEL.key: kernel,
        "window": filters.window_name(unit, number),
        _STATE.key: state,
    }


def _kept(rows: pd.DataFrame, state: str) -> pd.DataFrame:
    if state == ALL:
        return rows
    wanted = changes.OPEN if state == _OPEN else (state,)
    return rows[rows["state"].isin(wanted)]


def _groups(view: View, rows: pd.DataFrame, gpu: str, branch: str | None, window: Window) -> None:
    groups = changes.grouped(rows)
    place = group_table(groups, key="change-groups")
    exports.button(
        "CSV",
        lambda: exports.csv(rows[list(CHANGE_NAMES)].rename(columns=CHANGE_NAMES)),
        exports.file_name("changes", gpu, data.day(view.now)[:10]),
    )
    group = groups.to_dict("records")[place]
    members = rows.loc[group["members"]]
    sha, previous = str(group["sha"]), str(group["previous_sha"])
    facts.heading(f"{group['kernel']}, {short(previous)} to {short(sha)}")
    inside = change_table(members, key="change-members") if len(members) > 1 else 0
    _detail(view, members.to_dict("records")[inside], gpu, branch, window)
    _people(view, members, gpu, sha)


def _detail(
    view: View, row: Mapping[str, object], gpu: str, branch: str | None, window: Window
) -> None:
    case_key = str(row["case_key"])
    left, right = st.columns([3, 2])
    with left:
        details.course(view, case_key, gpu, branch, window)
    with right:
        focus = Focus(str(row["run_id"]), case_key, str(row["base_run"]))
        details.show(view, focus, key="change-detail", to_series=True)
        result = data.result(view.snapshot, focus.run_id, case_key)
        if result is not None and row["previous_sha"] and row["sha"]:
            st.caption("Search the commits between")
            command = bisect(result.case, str(row["previous_sha"]), str(row["sha"]))
            copying.code(command)


def _people(view: View, members: pd.DataFrame, gpu: str, sha: str) -> None:
    entries = changes.log(view.snapshot, gpu, tuple(members["case_key"]), sha)
    if len(entries):
        names = dict(zip(members["case_key"], members["label"], strict=True))
        log_table(entries.assign(case=entries["case_key"].map(names)), key="triage-log")
    if triage_allowed():
        form(members, gpu)
    else:
        st.caption("Triage: `bandwatch triage`, or start the dashboard with `--allow-triage`.")


if __name__ == "__main__":
    layout.draw(CHANGES, body)
