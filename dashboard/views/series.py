"""Series: one case or up to six of a kernel over commits or dates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from dashboard import (
    changes,
    data,
    details,
    exports,
    facts,
    filters,
    gated,
    history,
    layout,
    notices,
)
from dashboard.charts.base import plural
from dashboard.charts.series import SELECTION, series_chart
from dashboard.columns import series_export
from dashboard.details import Focus
from dashboard.filters import BRANCH, DTYPE, GPU, IMPLEMENTATION, KERNEL, MAX_SERIES
from dashboard.findings import WINDOW
from dashboard.history import History, Window
from dashboard.layout import Parameters, View
from dashboard.metrics import METRICS
from dashboard.metrics import change as shown_change
from dashboard.pages import SERIES
from dashboard.tables import series_table
from dashboard.text import short

_AXES = ("commit order", "date")


@dataclass(frozen=True, slots=True)
class Choice:
    """What the filters say: which cases, where and how far back."""

    gpu: str
    branch: str | None
    kernel: str
    cases: Mapping[str, str]
    matching: int
    picked: bool
    window: Window


def body(view: View) -> Parameters:
    """Draw the page and return the parameters of its permanent link."""
    catalogue = data.catalogue(view.snapshot)
    choice = _choose(view, catalogue)
    look = _look(view)
    several = [
        data.series(view.snapshot, key, choice.gpu, choice.branch) for key in choice.cases.values()
    ]
    if choice.window.until and not any(history.has(s, choice.window.until) for s in several):
        notices.show(notices.not_found("commit", choice.window.until), view.colours)
        choice = replace(choice, window=replace(choice.window, until=None))
    seen = gated.seen(view.snapshot, choice.gpu, choice.branch)
    loaded = history.load(view.snapshot, several, choice.window, METRICS[look["metric"]], seen=seen)
    if not len(loaded.points):
        notices.show(notices.nothing_for(("the branch", "the window")), view.colours)
        return {}
    _tell(view, choice, loaded)
    described = series_chart(loaded.view(look), view.colours)
    picked = layout.chart(described, key="series-chart", on_select=True)
    _below(view, choice, loaded, picked.get(SELECTION))
    return _permanent(choice, loaded, look)


def _choose(view: View, rows: filters.Rows) -> Choice:
    address = view.address
    _seed_kernel(address, rows)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        models = [model.name for model in data.models(view.snapshot)]
        gpu = filters.choose(rows, GPU, address, preferred=models[0])
        rows = filters.narrowed(rows, GPU, gpu)
        branch = filters.choose_branch(data.branches(view.snapshot, gpu), address)
        kernel = filters.choose(rows, KERNEL, address)
        rows = filters.narrowed(rows, KERNEL, kernel)
        implementation = filters.choose(rows, IMPLEMENTATION, address)
        rows = filters.narrowed(rows, IMPLEMENTATION, implementation)
        dtype = filters.choose(rows, DTYPE, address)
        rows = filters.narrowed(rows, DTYPE, dtype)
        unit, number = filters.window(address)
    keys = {row["case"]: row["case_key"] for row in rows}
    picked = filters.choose_cases(list(keys), address)
    names = picked or _most_changed(view, gpu, branch, keys, number)
    return Choice(
        gpu=gpu,
        branch=branch,
        kernel=kernel,
        cases={name: keys[name] for name in names},
        matching=len(keys),
        picked=bool(picked),
        window=Window(unit, number, _until(view)),
    )


def _most_changed(
    view: View, gpu: str, branch: str | None, keys: Mapping[str, str], number: int
) -> list[str]:
    if len(keys) <= MAX_SERIES:
        return list(keys)
    names = {key: name for name, key in keys.items()}
    steps = changes.found(view.snapshot, gpu, branch, WINDOW.unit, WINDOW.number)
    order = [key for key in dict.fromkeys(steps["case_key"]) if key in names]
    if len(order) < MAX_SERIES:
        order += data.changed_most(view.snapshot, gpu, branch, tuple(names), number)
    return [names[key] for key in list(dict.fromkeys(order))[:MAX_SERIES]]


def _seed_kernel(address: filters.Address, rows: filters.Rows) -> None:
    """Choose the kernel of a linked case where the link names no kernel."""
    wanted = address.raw.get("case")
    if wanted and not address.raw.get(KERNEL.key):
        found = next((row["kernel"] for row in rows if row["case"] in wanted), None)
        if found is not None:
            st.session_state[KERNEL.key] = found


def _until(view: View) -> str | None:
    values = view.address.raw.get("until")
    return values[0].strip().lower() if values and values[0].strip() else None


def _look(view: View) -> dict[str, str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metric = filters.pick("Metric", "metric", list(METRICS), view.address)
        axis = filters.pick("Horizontal axis", "axis", list(_AXES), view.address)
        zero = st.toggle("From zero", key="zero", bind="query-params")
        log = st.toggle("Logarithmic", key="log", bind="query-params")
    return {"metric": metric, "axis": axis, "zero": str(zero), "log": str(log)}


def _tell(view: View, choice: Choice, loaded: History) -> None:
    told = [plural(choice.matching, "case") + " match"]
    if not choice.picked and choice.matching > MAX_SERIES:
        told.append(f"shown are the {MAX_SERIES} that changed most; choose others above")
    if loaded.group > 1:
        told.append(f"each point stands for {loaded.group} runs: median, and widest band")
    if loaded.thinned:
        told.append("of the measurements only some are drawn")
    st.caption("; ".join(told) + ".")
    if choice.window.until is not None:
        st.page_link(
            SERIES.file,
            label=f"Shown up to commit {short(choice.window.until)}; show the newest",
            query_params={
                key: values for key, values in view.address.raw.items() if key != "until"
            },
        )
    if loaded.launch_bound:
        facts.line((loaded.launch_bound,), view.colours)
    for name, effect in loaded.drifts:
        notices.show(notices.drifts(name, shown_change(effect)), view.colours)
    newest = data.newest(view.snapshot, choice.gpu, choice.branch)
    for name, last in loaded.ended(newest):
        notices.show(notices.no_longer_measured(name, last), view.colours)


def _below(view: View, choice: Choice, loaded: History, picked: object) -> None:
    run_id, row = loaded.chosen(picked)
    facts.heading(f"{row['line']}, commit {row['sha']}")
    before = loaded.before(str(row["case_key"]), run_id)
    focus = Focus(run_id, str(row["case_key"]), before)
    details.show(view, focus, key="series-detail", wide=True)
    st.subheader("Results", anchor=False)
    series_table(loaded.points, key="series-table")
    newest = str(loaded.points["sha"].iloc[-1])
    exports.button(
        "CSV",
        lambda: exports.csv(series_export(history.with_floors(view.snapshot, loaded.every))),
        exports.file_name("series", choice.kernel, newest, data.day(view.now)[:10]),
    )


def _permanent(choice: Choice, loaded: History, look: Mapping[str, str]) -> Parameters:
    commits = [sha for sha in loaded.points["full_sha"].to_list() if sha]
    return {
        GPU.key: choice.gpu,
        BRANCH.key: choice.branch or filters.ALL,
        KERNEL.key: choice.kernel,
        "case": list(choice.cases),
        "window": filters.window_name(choice.window.unit, choice.window.number),
        **({"until": commits[-1]} if commits else {}),
        **{key: value.lower() for key, value in look.items()},
    }


if __name__ == "__main__":
    layout.draw(SERIES, body)
