"""Overview: which kernels lost bandwidth, since which commit, how sure, whose, how to reproduce."""

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import (
    data,
    details,
    facts,
    filters,
    findings,
    judging,
    layout,
    newest,
    notices,
)
from dashboard.charts.base import plural
from dashboard.details import Focus
from dashboard.filters import ALL, BRANCH, GPU
from dashboard.findings import MAX_MODELS, WINDOW
from dashboard.judging import Verdicts
from dashboard.layout import Parameters, View
from dashboard.pages import OVERVIEW, RUNS
from dashboard.text import ago
from tracker.model import VerdictKind
from tracker.occasion import Meant
from tracker.queries import RunInfo

_COMPARED = tuple(str(kind) for kind in VerdictKind)


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    models = data.models(view.snapshot)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gpu = filters.choose_model(models, view.address, every=True)
        shown = [model.name for model in models] if gpu == ALL else [gpu]
        of_model = None if gpu == ALL else gpu
        branch = filters.choose_branch(data.branches(view.snapshot, of_model), view.address)
    found = [_model(view, name, branch, brief=n >= MAX_MODELS) for n, name in enumerate(shown)]
    _findings(view, found, branch)
    return {GPU.key: gpu, BRANCH.key: branch or ALL}


def _model(view: View, gpu: str, branch: str | None, *, brief: bool) -> pd.DataFrame | None:
    """Draw the newest run of one GPU model; return its findings, None where they are not sought."""
    facts.heading(gpu)
    meant = data.meant(view.snapshot, gpu, branch)
    if meant is None:
        notices.show(newest.missing(view, gpu, branch), view.colours)
        return None
    run = meant.run
    _freshness(view, meant)
    verdicts = judging.of_meant(view.snapshot, meant)
    facts.counts(judging.counts(verdicts, view.colours))
    for notice in _states(run, verdicts):
        notices.show(notice, view.colours)
    if brief:
        told = f"Findings are those of {MAX_MODELS} models; choose this one above for its own."
        facts.line((told,), view.colours)
        return None
    return findings.of_run(view.snapshot, run, verdicts, branch)


def _freshness(view: View, meant: Meant) -> None:
    run = meant.run
    with st.container(horizontal=True, vertical_alignment="center"):
        facts.line(
            (f"last run {ago(view.now - run.started)}", *details.short_facts(run)), view.colours
        )
        st.page_link(
            RUNS.file,
            label="Run details",
            query_params={"gpu": run.gpu_model, "run": run.run_id},
            width="content",
        )
    if meant.told:
        facts.line(meant.told, view.colours)


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


def _findings(view: View, parts: Sequence[pd.DataFrame | None], branch: str | None) -> None:
    sought = [part for part in parts if part is not None]
    if not sought:
        return
    found = findings.ordered(sought)
    facts.heading("What asks for attention")
    if not len(found):
        # Undecided cases stand above as a count: none of them was found unchanged.
        told = f"no change was called in the newest runs and in the last {WINDOW.number} commits"
        facts.line((told, "what is undecided may hide one"), view.colours)
        return
    _told(view, found)
    shown = found.head(findings.MAX_ROWS)
    place = findings.table(shown, several=len(parts) > 1, key="findings")
    _detail(view, shown.to_dict("records")[place], branch)


def _told(view: View, found: pd.DataFrame) -> None:
    count, where = plural(len(found), "finding"), f"the last {WINDOW.number} commits"
    what = "select a row for its series and the command that measures it again"
    told = [f"{count} in the newest runs and in {where}, worst first; {what}"]
    if len(found) > findings.MAX_ROWS:
        told.append(f"the first {findings.MAX_ROWS} are shown, all are under Changes")
    facts.line(told, view.colours)


def _detail(view: View, row: Mapping[Hashable, object], branch: str | None) -> None:
    gpu, case_key, run_id = str(row["gpu"]), str(row["case_key"]), str(row["run_id"])
    facts.heading(f"{row['label']} on {gpu}")
    left, right = st.columns([3, 2])
    with left:
        details.course(view, case_key, gpu, branch, WINDOW)
        facts.line((str(row["reason"]),), view.colours)
    with right:
        focus = Focus(run_id, case_key, str(row["base_run"]) or None)
        details.show(view, focus, key="detail", to_series=True)


if __name__ == "__main__":
    layout.draw(OVERVIEW, body)
