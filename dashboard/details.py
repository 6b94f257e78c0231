"""Everything about one result on one place: commit, numbers, warnings, how to measure it again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard import beside, commands, copying, data, facts, gated, history, layout, orphans
from dashboard.charts.series import series_chart
from dashboard.facts import Fact
from dashboard.history import Window
from dashboard.layout import View
from dashboard.metrics import BANDWIDTH, percent
from dashboard.pages import COMPARE, RUNS, SERIES
from dashboard.text import ABSENT, person, plain, short
from tracker import units, yardsticks
from tracker.model import Result
from tracker.queries import RunInfo

_LOOK = {"axis": "commit order", "zero": "False", "log": "False"}


@dataclass(frozen=True, slots=True)
class Focus:
    """One result: its run, its case, and the run before it in the series, if any."""

    run_id: str
    case_key: str
    before: str | None = None


def show(
    view: View, focus: Focus, *, key: str, to_series: bool = False, wide: bool = False
) -> None:
    """Draw facts, warnings, the command and the links of one result, side by side where `wide`."""
    run = data.run(view.snapshot, focus.run_id)
    result = data.result(view.snapshot, focus.run_id, focus.case_key)
    if run is None or result is None:
        return
    left, right = st.columns(2) if wide else (st.container(), st.container())
    with left:
        facts.show([*run_facts(view, run), *result_facts(result)], view.colours)
    with right:
        for warning in result.warnings:
            facts.line((f"{warning.code}: {warning.message}",), view.colours)
        st.caption("Measure it again")
        copying.code(commands.reproduce(result.case, run.sha, result.test))
        with st.container(horizontal=True, vertical_alignment="center"):
            _links(run, result, focus, key=key, to_series=to_series)


@layout.replayed
def course(view: View, case_key: str, gpu: str, branch: str | None, window: Window) -> None:
    """Draw the chart of one case's bandwidth over commits, nothing where there is no result."""
    series = data.series(view.snapshot, case_key, gpu, branch)
    seen = gated.seen(view.snapshot, gpu, branch)
    loaded = history.load(
        view.snapshot, [series], window, BANDWIDTH, dots=history.FEW_DOTS, seen=seen
    )
    if len(loaded.points):
        described = series_chart(loaded.view(_LOOK), view.colours, height=300)
        layout.chart(described, key=f"course-{gpu}-{case_key}")
        if loaded.launch_bound:
            facts.line((loaded.launch_bound,), view.colours)
        beside.series(loaded.points, key=f"course-table-{gpu}-{case_key}")


def _links(run: RunInfo, result: Result, focus: Focus, *, key: str, to_series: bool) -> None:
    if to_series:
        st.page_link(SERIES.file, label="Series", query_params=series_link(run, result))
    if focus.before is not None:
        st.page_link(
            COMPARE.file,
            label="Compare with the run before",
            query_params={"gpu": run.gpu_model, "base": focus.before, "head": run.run_id},
        )
    st.page_link(
        RUNS.file,
        label="Run details",
        query_params={"gpu": run.gpu_model, "run": run.run_id},
    )
    facts.web_button("CI run", run.ci.get("url"), key=f"{key}-ci")


def series_link(run: RunInfo, result: Result) -> Mapping[str, str]:
    """Return the parameters of the series page for one case."""
    branch = {"branch": run.checkout.branch} if run.checkout.branch else {}
    return {
        "gpu": run.gpu_model,
        "kernel": result.case.kernel,
        "case": data.label(result.case),
        **branch,
    }


def short_facts(run: RunInfo) -> Sequence[str]:
    """Return what identifies a run in one line."""
    commit = run.checkout.commit
    return (
        f"commit {short(run.sha)}",
        plain(commit.subject, 90) if commit else "",
        person(commit.author) if commit else "",
        plain(run.checkout.branch) if run.checkout.branch else "",
        f"{data.day(run.started)} UTC",
        "uncommitted changes" if run.checkout.dirty else "",
        "recorded demo data" if run.demo else "",
        data.other_than_suite(run),
    )


def run_facts(view: View, run: RunInfo) -> Sequence[Fact]:
    """Return what identifies a run: commit, subject, author, branch, time, device."""
    commit = run.checkout.commit
    state = " with uncommitted changes" if run.checkout.dirty else ""
    if not run.demo and run.sha in orphans.left_git(view.snapshot):
        state += ", which has left git: no branch or tag leads there"
    return (
        ("Commit", f"{short(run.sha)}{state}"),
        ("Subject", plain(commit.subject) if commit else ABSENT),
        ("Author", person(commit.author) if commit else ABSENT),
        ("Branch", plain(run.checkout.branch)),
        ("Measured", f"{data.day(run.started)} UTC"),
        ("Device", f"{run.gpu_model}, {plain(run.device.uuid, 60)}"),
    )


def result_facts(result: Result) -> Sequence[Fact]:
    """Return the numbers of a result, those that it has."""
    found: list[Fact] = [("Status", result.status.value)]
    if result.summary is not None:
        found.append(
            (
                "Time",
                f"{units.seconds(result.summary.median_s)}, median of {result.summary.count}",
            )
        )
    if (floor := yardsticks.floor_beside(result)) is not None:
        found.append(("Empty kernel", f"{units.seconds(floor, 3)} by the same timer"))
    if result.bandwidth is not None:
        bound = f", {yardsticks.LAUNCH_BOUND}" if yardsticks.launch_bound(result) else ""
        found.append(("Bandwidth", f"{units.bandwidth(result.bandwidth)}{bound}"))
    if not yardsticks.launch_bound(result):
        found += _fractions(result)
    if result.correctness.detail:
        found.append(("Correctness", plain(result.correctness.detail, 300)))
    return found


def _fractions(result: Result) -> Iterator[Fact]:
    if result.copy_fraction is not None:
        yield "Fraction of copy", percent(result.copy_fraction)
    if (of_sum := yardsticks.sum_fraction(result)) is not None:
        yield "Fraction of sum", f"{percent(of_sum)} (a sum of two arrays)"
