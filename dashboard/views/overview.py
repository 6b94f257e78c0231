"""Overview: which kernels lost bandwidth, since which commit, how sure, whose, how to reproduce."""

from collections.abc import Hashable, Mapping

import streamlit as st

from dashboard import (
    data,
    details,
    facts,
    filters,
    findings,
    judging,
    layout,
    notices,
)
from dashboard.charts.base import plural
from dashboard.details import Focus
from dashboard.filters import ALL, BRANCH, GPU
from dashboard.findings import MAX_MODELS, WINDOW, Attention
from dashboard.judging import Verdicts
from dashboard.layout import Parameters, View
from dashboard.pages import OVERVIEW, RUNS
from dashboard.text import ago
from tracker.model import VerdictKind
from tracker.queries import RunInfo

_COMPARED = tuple(str(kind) for kind in VerdictKind)


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    names = [model.name for model in data.models(view.snapshot)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gpu = filters.choose_named(GPU, [ALL, *names], view.address)
        shown = names if gpu == ALL else [gpu]
        of_model = None if gpu == ALL else gpu
        branch = filters.choose_branch(data.branches(view.snapshot, of_model), view.address)
    opened = False
    for place, name in enumerate(shown):
        opened |= _model(view, name, branch, brief=place >= MAX_MODELS, first=not opened)
    return {GPU.key: gpu, BRANCH.key: branch or ALL}


def _model(view: View, gpu: str, branch: str | None, *, brief: bool, first: bool) -> bool:
    """Draw one GPU model; say whether it has findings, whose first is open on the `first` one."""
    facts.heading(gpu)
    run = data.newest(view.snapshot, gpu, branch)
    if run is None:
        notices.show(notices.nothing_for(("the branch",)), view.colours)
        return False
    _freshness(view, run)
    verdicts = judging.of_run(view.snapshot, run.run_id)
    facts.line(("newest run against its baseline",), view.colours)
    facts.counts(judging.counts(verdicts, view.colours))
    for notice in _states(run, verdicts):
        notices.show(notice, view.colours)
    if brief:
        return False
    told = findings.of_run(view.snapshot, run, verdicts, branch)
    return _findings(view, told, branch, first=first)


def _freshness(view: View, run: RunInfo) -> None:
    told = (f"last run {ago(view.now - run.started)}", *details.short_facts(run))
    with st.container(horizontal=True, vertical_alignment="center"):
        facts.line(told, view.colours)
        st.page_link(
            RUNS.file,
            label="Run details",
            query_params={"gpu": run.gpu_model, "run": run.run_id},
            width="content",
        )


def _states(run: RunInfo, verdicts: Verdicts) -> list[notices.Notice]:
    found = []
    if run.finished_at is None:
        found.append(notices.unfinished_run())
    elif not run.complete:
        found.append(notices.partial_run())
    cases = len(verdicts.rows)
    if verdicts.count("no baseline") and not any(map(verdicts.count, _COMPARED)):
        found.append(notices.too_few_runs())
    elif cases and verdicts.count("undecided") == cases:
        found.append(notices.only_undecided(cases))
    found += [notices.Notice("A setting needs attention", note) for note in verdicts.notes]
    return found


def _findings(view: View, told: Attention, branch: str | None, *, first: bool) -> bool:
    gpu, count = told.run.gpu_model, len(told.found)
    if not count:
        st.caption("Nothing asks for attention.")
        return False
    where = f"{plural(count, 'case')} of the newest run and of the last {WINDOW.number} commits"
    facts.line((f"what asks for attention: {where}",), view.colours)
    place = findings.table(
        told, key=f"findings-{gpu}", described=f"What asks for attention on {gpu}."
    )
    if place is None and not first:
        st.caption(
            "Select a row for its series, its commit and the command that measures it again."
        )
        return True
    _detail(view, told.found.to_dict("records")[place or 0], gpu, branch)
    return True


def _detail(view: View, row: Mapping[Hashable, object], gpu: str, branch: str | None) -> None:
    case_key, run_id = str(row["case_key"]), str(row["run_id"])
    left, right = st.columns([3, 2])
    with left:
        details.course(view, case_key, gpu, branch, WINDOW)
        facts.line((str(row["reason"]),), view.colours)
    with right:
        focus = Focus(run_id, case_key, str(row["base_run"]) or None)
        details.show(view, focus, key=f"detail-{gpu}", to_series=True)


if __name__ == "__main__":
    layout.draw(OVERVIEW, body)
