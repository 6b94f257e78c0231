"""The change points of a GPU model in a window, with what people said of them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from dashboard.data import cached, day, label
from dashboard.levels import Course, Step, steps_of
from dashboard.session import thresholds
from dashboard.text import ABSENT, person, plain
from tracker import queries
from tracker.loop.notify import AUTHOR
from tracker.model import Commit, VerdictKind
from tracker.queries import ResultTable, RunInfo
from tracker.store import Store
from tracker.store.people import Triage, TriageState, triage_log, triage_states

# Newest runs that are searched; older changes are on the series page.
MAX_RUNS = 400
FIXED = "fixed"
NEW = TriageState.NEW.value
STATES = (*(state.value for state in TriageState), FIXED)
# What still asks for someone's attention.
OPEN = (NEW, TriageState.REOPENED.value, TriageState.ACKNOWLEDGED.value)
_COLUMNS = (
    *("kind", "effect", "p_value", "before", "after", "label", "case_key", "kernel"),
    *("sha", "previous_sha", "subject", "author", "started", "measured", "run_id", "base_run"),
    *("runs_ago", "state", "state_author", "note"),
)


@cached
def found(store: Store, gpu: str, branch: str | None, unit: str, number: int) -> pd.DataFrame:
    """Return the change points of every case, by size and certainty, the largest first.

    `effect` is the relative change of bandwidth, `before` and `after` the levels in bytes per
    second; `previous_sha` is the last commit that was measured before the change.
    """
    newest = queries.runs(store, gpu_model=gpu, branch=branch, dirty=False, limit=MAX_RUNS)
    runs = _in_commit_order(store, _window(newest, unit, number))
    table = queries.result_table(store, runs)
    commits = queries.commits(store, [run.sha for run in runs if run.sha])
    states = triage_states(store, {AUTHOR})
    frame = pd.DataFrame(
        [
            {
                **_place(table, case, first, last, step),
                **_people(first, commits, states, gpu, table.case_keys[case]),
            }
            for case, first, last, step in _steps(table)
        ],
        columns=list(_COLUMNS),
    )
    order = (-frame["effect"].abs() * (1 - frame["p_value"])).sort_values(kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _window(runs: Sequence[RunInfo], unit: str, number: int) -> list[RunInfo]:
    """Return the newest runs inside a window of days or commits; `runs` are newest first."""
    if not number or not runs:
        return list(runs)
    if unit == "days":
        return [run for run in runs if run.started >= runs[0].started - number * 86400]
    kept = set(list(dict.fromkeys(run.sha for run in runs))[:number])
    return [run for run in runs if run.sha in kept]


def _in_commit_order(store: Store, runs: Sequence[RunInfo]) -> list[RunInfo]:
    """Return runs in the order of their commits; those of other lines come by their start."""
    if not runs or runs[0].sha is None:
        return sorted(runs, key=lambda run: run.started)
    line = (runs[0].sha, *queries.ancestors(store, runs[0].sha))
    depth = {sha: place for place, sha in enumerate(line)}
    ordered = sorted(
        (run for run in runs if run.sha in depth),
        key=lambda run: (-depth[run.sha or ""], run.started),
    )
    for run in sorted((r for r in runs if r.sha not in depth), key=lambda r: r.started):
        after = sum(other.started <= run.started for other in ordered)
        ordered.insert(after, run)
    return ordered


def _steps(table: ResultTable) -> Iterator[tuple[int, RunInfo, RunInfo, Step]]:
    """Yield every step: its case, the first run of the new level and the last run before it."""
    order = np.argsort(table.case, kind="stable")
    cuts = np.searchsorted(table.case[order], np.arange(1, len(table.cases)))
    mine = np.split(order, cuts) if len(table.cases) else []
    keys = [run.environment_key for run in table.runs]
    devices = [run.device.uuid for run in table.runs]
    bandwidth, fraction = table.bandwidth, table.bandwidth / table.copy_bytes_per_s
    courses = [
        Course(
            bandwidth=bandwidth[rows],
            copy_fraction=fraction[rows],
            environment=[keys[i] for i in table.run[rows].tolist()],
            device=[devices[i] for i in table.run[rows].tolist()],
            status=table.status[rows].tolist(),
        )
        for rows in mine
    ]
    for case, found in enumerate(steps_of(courses, thresholds().policy)):
        runs = table.run[mine[case]]
        for step in found:
            yield case, table.runs[runs[step.index]], table.runs[runs[step.previous]], step


def _place(
    table: ResultTable, case: int, first: RunInfo, last: RunInfo, step: Step
) -> dict[str, str | float | int]:
    kind = VerdictKind.REGRESSION if step.effect < 0 else VerdictKind.IMPROVEMENT
    return {
        "kind": kind.value,
        "effect": step.effect,
        "p_value": step.p_value,
        "before": step.before,
        "after": step.after,
        "label": label(table.cases[case]),
        "case_key": table.case_keys[case],
        "kernel": table.cases[case].kernel,
        "sha": first.sha or "",
        "previous_sha": last.sha or "",
        "started": first.started,
        "measured": day(first.started),
        "run_id": first.run_id,
        "base_run": last.run_id,
        "runs_ago": len(table.runs) - 1 - table.runs.index(first),
        "state": NEW if step.lasting else FIXED,
    }


def _people(
    first: RunInfo,
    commits: Mapping[str, Commit],
    states: Mapping[tuple[str, str, str], Triage],
    gpu: str,
    case_key: str,
) -> dict[str, str]:
    commit = commits.get(first.sha or "")
    entry = states.get((case_key, gpu, first.sha or ""))
    told = {
        "subject": plain(commit.subject, 90) if commit else ABSENT,
        "author": person(commit.author) if commit else ABSENT,
        "state_author": plain(entry.author, 60) if entry else "",
        "note": plain(entry.note, 200) if entry and entry.note else "",
    }
    return told | ({"state": entry.state.value} if entry else {})


def grouped(changes: pd.DataFrame) -> pd.DataFrame:
    """Return one row for the changes of one kernel in one commit range and direction.

    Columns: kind, kernel, sha, previous_sha, subject, author, measured, cases, effect and p_value
    (of the largest), states; `members` are the places in `changes`.
    """
    rows = []
    keys = ["sha", "previous_sha", "kernel", "kind"]
    for (sha, previous, kernel, kind), part in changes.groupby(keys, sort=False):
        largest = part.loc[part["effect"].abs().sort_values(ascending=False).index].iloc[0]
        rows.append(
            {
                "kind": kind,
                "kernel": kernel,
                "sha": sha,
                "previous_sha": previous,
                "subject": largest["subject"],
                "author": largest["author"],
                "measured": largest["measured"],
                "started": largest["started"],
                "cases": len(part),
                "effect": largest["effect"],
                "p_value": largest["p_value"],
                "states": ", ".join(dict.fromkeys(part["state"])),
                "members": part.index.to_list(),
            }
        )
    return pd.DataFrame(rows)


@cached
def log(store: Store, gpu: str, case_keys: tuple[str, ...], sha: str) -> pd.DataFrame:
    """Return what people said of the changes of one commit, the newest first."""
    entries = [
        entry
        for entry in reversed(triage_log(store))
        if entry.gpu_model == gpu
        and entry.commit_sha == sha
        and entry.case_fingerprint in case_keys
    ]
    return pd.DataFrame(
        [
            {
                "at": plain(entry.at, 40),
                "author": plain(entry.author, 60),
                "state": entry.state.value,
                "note": plain(entry.note, 400) if entry.note else "",
                "case_key": entry.case_fingerprint,
            }
            for entry in entries
        ],
        columns=["at", "author", "state", "note", "case_key"],
    )
