"""Runs: environment, device states and measurements of each, and what it compares with."""

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard import comparable, data, details, exports, facts, filters, layout, notices, orphans
from dashboard.charts.distribution import distribution_chart
from dashboard.facts import Fact
from dashboard.filters import ALL, BRANCH, GPU, Facet
from dashboard.layout import Parameters, View
from dashboard.pages import COMPARE, RUNS
from dashboard.tables import result_table, run_table
from dashboard.text import ABSENT, person, plain, short
from tracker import queries, units
from tracker.config import redact
from tracker.exporters.flat import to_csv
from tracker.model import DeviceState
from tracker.occasion import first_of_suite
from tracker.queries import RunInfo
from tracker.record import dump_run

_LIMIT = 200
_CASE = Facet("case", "Case", optional=False, width=520)
_TABS = ("Results", "Environment", "Device states", "Measurements")


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gpu = filters.choose_model(data.models(view.snapshot), view.address, every=True)
        model = None if gpu == ALL else gpu
        branches = data.branches(view.snapshot, model)
        branch = filters.choose_named(BRANCH, [ALL, *branches], view.address)
    found = data.runs(view.snapshot, model, None if branch == ALL else branch, _LIMIT)
    if not found:
        notices.show(notices.nothing_for(("the branch", "the GPU model")), view.colours)
        return {GPU.key: gpu, BRANCH.key: branch}
    left = orphans.left_git(view.snapshot)
    place = run_table(_rows(found, left), key="runs-table")
    if len(found) == _LIMIT:
        st.caption(f"The newest {_LIMIT} runs; narrow the filters for older ones.")
    run = _linked(view) if place is None else found[place]
    run = run or first_of_suite(found) or found[0]
    _run(view, run)
    return {GPU.key: run.gpu_model, BRANCH.key: branch, "run": run.run_id}


def _linked(view: View) -> RunInfo | None:
    reference = view.address.raw.get("run", [""])[0]
    if not reference:
        return None
    found = data.run(view.snapshot, reference)
    if found is None:
        notices.show(notices.not_found("run", reference), view.colours)
    return found


def _rows(found: Sequence[RunInfo], left: Collection[str]) -> pd.DataFrame:
    return pd.DataFrame([_table_row(run, left) for run in found])


def _table_row(run: RunInfo, left: Collection[str]) -> dict[str, str | int]:
    commit = run.checkout.commit
    return {
        "sha": short(run.sha),
        "started": data.day(run.started),
        "gpu": run.gpu_model,
        "branch": run.checkout.branch or ABSENT,
        "subject": plain(commit.subject, 90) if commit else ABSENT,
        "author": person(commit.author) if commit else ABSENT,
        "results": run.results,
        "statuses": _statuses(run),
        "state": ", ".join(_flags(run, left)),
        "device": run.device.uuid,
    }


def _statuses(run: RunInfo) -> str:
    return ", ".join(
        f"{count} {status.replace('_', ' ')}" for status, count in sorted(run.statuses.items())
    )


def _flags(run: RunInfo, left: Collection[str]) -> list[str]:
    other = data.other_than_suite(run)
    flags = (
        (bool(other), other),
        (not run.demo and run.sha in left, orphans.LEFT_GIT),
        (run.finished_at is None, "no end"),
        (not run.complete, "a part"),
        (run.checkout.dirty, "uncommitted changes"),
        (run.checkout.shallow, "shallow clone"),
        (run.demo, "demo"),
    )
    return [words for flag, words in flags if flag]


def _run(view: View, run: RunInfo) -> None:
    facts.heading(f"Run {run.run_id}")
    if run.finished_at is None:
        notices.show(notices.unfinished_run(), view.colours)
    left, right = st.columns(2)
    with left:
        facts.show([*details.run_facts(view, run), *_how(run)], view.colours)
    with right:
        _comparability(view, run)
    with st.container(horizontal=True, vertical_alignment="center"):
        _files(view, run)
        facts.web_button("CI run", run.ci.get("url"), key="run-ci")
    tabs = st.tabs(list(_TABS), key="tab", on_change="rerun", bind="query-params")
    drawers = (_results, _environment, _states, _measurements)
    for tab, drawer in zip(tabs, drawers, strict=True):
        # Only the open one is read and drawn.
        if tab.open:
            with tab:
                drawer(view, run)


def _how(run: RunInfo) -> list[Fact]:
    end = ABSENT if run.finished_at is None else f"{_moment(run.finished_at)} UTC"
    return [
        ("Finished", end),
        ("Command", plain(redact(run.command or ""), 300)),
        ("Notes", plain("; ".join((*run.checkout.notes, *run.notes)), 400)),
    ]


def _moment(at: str) -> str:
    """Return an ISO 8601 time as pages show times, to the second."""
    return datetime.fromisoformat(at).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _comparability(view: View, run: RunInfo) -> None:
    newest = data.newest(view.snapshot, run.gpu_model, None)
    if newest is None:
        st.caption("No clean run of this GPU model is of the suite.")
        return
    if newest.run_id == run.run_id:
        st.caption("The newest clean run of the suite on this GPU model.")
        return
    told = f"the newest clean run of the suite, commit {short(newest.sha)}"
    found = comparable.obstacles(run, newest)
    if found:
        notices.show(notices.Notice(f"Not comparable with {told}", "; ".join(found)), view.colours)
    else:
        notices.show(notices.Notice(f"Comparable with {told}"), view.colours)
    for remark in comparable.remarks(run, newest):
        facts.line((remark,), view.colours)
    st.page_link(
        COMPARE.file,
        label="Compare with the newest run",
        query_params={"gpu": run.gpu_model, "base": run.run_id, "head": newest.run_id},
    )


def _files(view: View, run: RunInfo) -> None:
    store, name = view.snapshot.store, f"run_{run.run_id}"

    def results() -> bytes:
        return b"".join(to_csv(store, [run]))

    def record() -> bytes:
        return json.dumps(dump_run(queries.load_run(store, run.run_id)), indent=1).encode()

    exports.button("Results and measurements, CSV", results, exports.file_name(name))
    exports.button(
        "Record, JSON",
        record,
        exports.file_name(name, extension="json"),
        mime="application/json",
    )


def _results(view: View, run: RunInfo) -> None:
    result_table(data.latest(view.snapshot, run.run_id), key="run-results")


def _environment(view: View, run: RunInfo) -> None:
    e = run.environment
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(e.libraries.items()))
    power = ABSENT if e.power_limit_w is None else f"{e.power_limit_w:g} W"
    cache = ABSENT if e.l2_bytes is None else units.size(e.l2_bytes)
    facts.show(
        [
            ("Backend", e.backend),
            ("GPU model", e.gpu_model),
            ("Compute capability", plain(e.compute_capability)),
            ("Driver", plain(e.driver)),
            ("CUDA", plain(e.cuda)),
            ("Libraries", plain(libraries, 400)),
            ("Clock policy", plain(e.clock_policy)),
            ("Power limit", power),
            ("ECC", _yes(flag=e.ecc)),
            ("MIG", _yes(flag=e.mig)),
            ("L2 cache", cache),
            ("System", plain(e.os)),
            ("Python", plain(e.python)),
            ("Fingerprint", run.environment_key),
        ],
        view.colours,
    )


def _yes(*, flag: bool | None) -> str:
    return ABSENT if flag is None else ("on" if flag else "off")


def _case(view: View, run: RunInfo) -> str | None:
    rows = data.latest(view.snapshot, run.run_id)
    if not len(rows):
        notices.show(notices.no_results(), view.colours)
        return None
    labels = [str(name) for name in rows["label"]]
    chosen = filters.choose_named(_CASE, labels, view.address)
    return str(rows["case_key"].iloc[labels.index(chosen)])


def _states(view: View, run: RunInfo) -> None:
    case = _case(view, run)
    result = data.result(view.snapshot, run.run_id, case) if case else None
    if result is None:
        return
    moments = (("Before", result.before), ("During", result.during), ("After", result.after))
    for column, (name, state) in zip(st.columns(3), moments, strict=True):
        with column:
            st.caption(name)
            facts.show(_state(state), view.colours)


def _state(state: DeviceState | None) -> list[Fact]:
    if state is None:
        return [("State", "not read")]

    def number(value: float | None, scale: float, unit: str) -> str:
        return ABSENT if value is None else f"{units.significant(value / scale, 4)} {unit}"

    others = ABSENT if state.other_processes is None else str(state.other_processes)
    return [
        ("SM clock", number(state.sm_clock_hz, 1e6, "MHz")),
        ("Memory clock", number(state.memory_clock_hz, 1e6, "MHz")),
        ("Temperature", number(state.temperature_c, 1, "°C")),
        ("Power", number(state.power_w, 1, "W")),
        ("Throttled by", plain(", ".join(state.throttle_reasons) or "nothing")),
        ("Other processes", others),
    ]


def _measurements(view: View, run: RunInfo) -> None:
    case = _case(view, run)
    if case is None:
        return
    result = data.result(view.snapshot, run.run_id, case)
    if result is None or not result.measurements_s:
        why = result.reasons.get("measurements_s", "") if result is not None else ""
        facts.line(
            ("no measurements of this case are kept", plain(why) if why else ""), view.colours
        )
        return
    times = pd.DataFrame({"side": short(run.sha), "value": list(result.measurements_s)})
    layout.chart(distribution_chart(times, view.colours), key="run-measurements")
    st.dataframe(
        pd.DataFrame({"us": [t * 1e6 for t in result.measurements_s]}),
        key="run-measurements-table",
        alt="Every measurement in the order in which it was made.",
        column_config={"us": st.column_config.NumberColumn("Time (us)", format="%.3f")},
        width=320,
    )


if __name__ == "__main__":
    layout.draw(RUNS, body)
