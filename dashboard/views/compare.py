"""Compare: two runs case by case, with both distributions of the selected one."""

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import beside, data, details, exports, facts, filters, judging, layout, notices
from dashboard.charts.base import plural
from dashboard.charts.distribution import distribution_chart
from dashboard.charts.effects import MAX_ROWS, effect_chart
from dashboard.columns import verdict_export
from dashboard.details import Focus
from dashboard.filters import ALL, GPU, KERNEL
from dashboard.judging import Verdicts
from dashboard.layout import Parameters, View
from dashboard.pages import COMPARE
from dashboard.tables import verdict_table
from dashboard.text import short
from tracker.errors import NotFoundError
from tracker.occasion import Meant, first_of_suite, meant, purpose
from tracker.queries import RunInfo
from tracker.sides import environment_difference

_SHOWN = ("decided", "all")
_RUNS = 200


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gpu = filters.choose_model(data.models(view.snapshot), view.address)
        runs = _runs(view, gpu)
        sides = _sides(view, gpu, runs) if len(runs) > 1 else None
    if sides is None:
        # Below the filters, not squeezed in beside them.
        notices.show(notices.too_few_runs(), view.colours)
        return {GPU.key: gpu}
    base, head = sides
    _who(view, base, head)
    _left_out(view, head, list(runs.values()))
    verdicts = judging.between(view.snapshot, base.run_id, head.run_id)
    facts.counts(judging.counts(verdicts, view.colours))
    rows, shown, kernel = _rows(view, verdicts)
    _table(view, rows, base, head)
    return {
        GPU.key: gpu,
        "base": base.run_id,
        "head": head.run_id,
        KERNEL.key: kernel,
        "show": shown,
    }


def _runs(view: View, gpu: str) -> dict[str, RunInfo]:
    """Return the newest runs of a GPU model, one of the suite and those that the link names."""
    found = list(data.runs(view.snapshot, gpu, None, _RUNS))
    linked = [_find(view, gpu, view.address.raw.get(key, [""])[0]) for key in ("base", "head")]
    for run in (data.newest(view.snapshot, gpu, None), *linked):
        if run is not None and all(run.run_id != other.run_id for other in found):
            found.append(run)
    return data.named(found)


def _find(view: View, gpu: str, reference: str) -> RunInfo | None:
    if not reference or " " in reference:
        return None
    try:
        return meant(view.snapshot.store, reference, gpu).run
    except NotFoundError:
        return None


def _sides(view: View, gpu: str, runs: Mapping[str, RunInfo]) -> tuple[RunInfo, RunInfo]:
    names = list(runs)
    by_id = {run.run_id: name for name, run in runs.items()}

    def find(reference: str) -> str | None:
        found = _find(view, gpu, reference)
        return by_id[found.run_id] if found is not None else None

    left, right = st.container(width="content"), st.container(width="content")
    with right:
        of_suite = first_of_suite(runs.values())
        place = list(runs.values()).index(of_suite) if of_suite else 0
        head = runs[filters.choose_run("Head", "head", names, view.address, find, default=place)]
    before = _before(head, list(runs.values()))
    with left:
        base = runs[filters.choose_run("Base", "base", names, view.address, find, default=before)]
    return base, head


def _before(head: RunInfo, runs: list[RunInfo]) -> int:
    """Return the place of the newest earlier clean run in the same environment, if there is one.

    One of the suite is preferred, which has the same cases, then one of another commit: runs of one
    commit show noise alone.
    """
    same = [
        place
        for place, run in enumerate(runs)
        if run.started < head.started
        and not run.checkout.dirty
        and run.environment_key == head.environment_key
    ]
    order = sorted(same, key=lambda n: (purpose(runs[n]) is not None, runs[n].sha == head.sha, n))
    return order[0] if order else 1


def _who(view: View, base: RunInfo, head: RunInfo) -> None:
    for word, run in (("base", base), ("head", head)):
        facts.line((word, *details.short_facts(run)), view.colours)
    differs = environment_difference(base.environment, head.environment)
    if differs:
        notices.show(notices.other_environment(differs), view.colours)
    elif base.device.uuid != head.device.uuid:
        notices.show(notices.other_board(), view.colours)
    if base.run_id == head.run_id:
        notices.show(notices.same_run(), view.colours)


def _left_out(view: View, head: RunInfo, runs: Sequence[RunInfo]) -> None:
    """Say which newer runs were passed over where the head is the newest of the suite."""
    if head == first_of_suite(runs) and (newer := tuple(runs[: runs.index(head)])):
        facts.line(Meant(head, newer).named, view.colours)


def _rows(view: View, verdicts: Verdicts) -> tuple[pd.DataFrame, str, str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kernel = filters.choose_among(verdicts.rows["kernel"], KERNEL, view.address, "Cases")
        shown = filters.pick("Show", "show", list(_SHOWN), view.address)
    rows = verdicts.rows if kernel == ALL else verdicts.rows[verdicts.rows["kernel"] == kernel]
    if shown == "decided":
        kept = rows[rows["outcome"].isin(judging.DECIDED)]
        st.caption(_hidden(rows, kept))
        rows = kept
    return judging.by_certainty(rows), shown, kernel


def _hidden(rows: pd.DataFrame, kept: pd.DataFrame) -> str:
    counts = rows.loc[~rows.index.isin(kept.index), "outcome"].value_counts()
    told = " and ".join(f"{counts[name]} {name}" for name in judging.ORDER if name in counts)
    return f"{plural(len(kept), 'decided case')} shown; hidden: {told or 'none'}."


def _table(view: View, rows: pd.DataFrame, base: RunInfo, head: RunInfo) -> None:
    if not len(rows):
        st.caption("No case of these two runs is decided; show all to see them.")
        return
    if rows["effect"].notna().any():
        described = effect_chart(
            rows.rename(columns={"outcome": "kind"}).assign(kind=judging.kinds(rows)), view.colours
        )
        layout.chart(described, key="compare-effects")
        if len(rows) > MAX_ROWS:
            st.caption(f"The chart shows the first {MAX_ROWS} of {len(rows)} rows.")
    place = verdict_table(rows, key="compare-table")
    exports.button(
        "CSV",
        lambda: exports.csv(verdict_export(rows)),
        exports.file_name("compare", short(base.sha), short(head.sha), data.day(view.now)[:10]),
    )
    _detail(view, rows.to_dict("records")[place], base, head)


def _detail(view: View, row: Mapping[Hashable, object], base: RunInfo, head: RunInfo) -> None:
    case_key = str(row["case_key"])
    facts.heading(str(row["label"]))
    facts.line((str(row["reason"]), str(row["decide"])), view.colours)
    left, right = st.columns([3, 2])
    with left:
        sides = [
            (f"{word} {short(run.sha)}", data.result(view.snapshot, run.run_id, case_key))
            for word, run in (("base", base), ("head", head))
        ]
        times = pd.DataFrame(
            [(side, t) for side, found in sides if found for t in found.measurements_s],
            columns=["side", "value"],
        )
        if len(times):
            layout.chart(distribution_chart(times, view.colours), key="compare-distributions")
            beside.distributions(times, key="compare-quartiles")
        else:
            st.caption("Neither side kept its measurements.")
    with right:
        details.show(view, Focus(head.run_id, case_key), key="compare-detail", to_series=True)


if __name__ == "__main__":
    layout.draw(COMPARE, body)
