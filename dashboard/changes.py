"""The change points of a GPU model in a window, with what people said of them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from dashboard import gated
from dashboard.data import Snapshot, cached, day, label
from dashboard.gated import NEAR, Seen
from dashboard.order import in_commit_order
from dashboard.session import thresholds
from dashboard.text import ABSENT, person, plain
from tracker import queries
from tracker.levels import Course, Step, lasting, steps_of, trusted
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


def found(snapshot: Snapshot, gpu: str, branch: str | None, unit: str, number: int) -> pd.DataFrame:
    """Return the changes of every case: losses first, those that are open before the others.

    They are change points, and in a short history what the gate told of its runs. `effect` is the
    relative change of bandwidth, `before` and `after` the levels in bytes per second;
    `previous_sha` is the last commit that was measured before the change.
    """
    return _found(snapshot, gpu, branch, unit, number, gated.seen(snapshot, gpu, branch))


@cached
def _found(
    store: Store, gpu: str, branch: str | None, unit: str, number: int, early: tuple[Seen, ...]
) -> pd.DataFrame:
    newest = queries.runs(store, gpu_model=gpu, branch=branch, dirty=False, limit=MAX_RUNS)
    runs = in_commit_order(store, _window(newest, unit, number))
    table = queries.result_table(store, runs)
    commits = queries.commits(store, [run.sha for run in runs if run.sha])
    states = triage_states(store, {AUTHOR})
    steps = [_place(table, case, first, last, step) for case, first, last, step in _steps(table)]
    rows = [*steps, *_early(table, early, steps)]
    frame = pd.DataFrame(
        [{**row, **_people(row, commits, states, gpu)} for row in rows], columns=list(_COLUMNS)
    )
    keys = pd.DataFrame(
        {
            "gain": frame["effect"] > 0,
            "closed": ~frame["state"].isin(OPEN),
            "size": -frame["effect"].abs() * (1 - frame["p_value"]),
        }
    )
    order = keys.sort_values(["gain", "closed", "size"], kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _window(runs: Sequence[RunInfo], unit: str, number: int) -> list[RunInfo]:
    """Return the newest runs inside a window of days or commits; `runs` are newest first."""
    if not number or not runs:
        return list(runs)
    if unit == "days":
        return [run for run in runs if run.started >= runs[0].started - number * 86400]
    kept = set(list(dict.fromkeys(run.sha for run in runs))[:number])
    return [run for run in runs if run.sha in kept]


def _steps(table: ResultTable) -> Iterator[tuple[int, RunInfo, RunInfo, Step]]:
    """Yield every step: its case, the first run of the new level and the last run before it."""
    order = np.argsort(table.case, kind="stable")
    cuts = np.searchsorted(table.case[order], np.arange(1, len(table.cases)))
    mine = np.split(order, cuts) if len(table.cases) else []
    keys = [run.environment_key for run in table.runs]
    devices = [run.device.uuid for run in table.runs]
    bandwidth, fraction = table.bandwidth, table.bandwidth / table.copy_bytes_per_s
    usable = trusted(table.status, table.shared)
    courses = [
        Course(
            bandwidth=bandwidth[rows],
            copy_fraction=fraction[rows],
            environment=[keys[i] for i in table.run[rows].tolist()],
            device=[devices[i] for i in table.run[rows].tolist()],
            trusted=usable[rows],
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
        "state": NEW if step.lasting else FIXED,
        **_between(table, first, last),
    }


def _between(table: ResultTable, first: RunInfo, last: RunInfo) -> dict[str, str | float | int]:
    """Return where a change lies: the first run after it and the last before it."""
    return {
        "sha": first.sha or "",
        "previous_sha": last.sha or "",
        "started": first.started,
        "measured": day(first.started),
        "run_id": first.run_id,
        "base_run": last.run_id,
        "runs_ago": len(table.runs) - 1 - table.runs.index(first),
    }


def _early(
    table: ResultTable, early: Sequence[Seen], steps: Sequence[Mapping[str, str | float | int]]
) -> Iterator[dict[str, str | float | int]]:
    """Yield what the gate saw and no change point near by tells."""
    by_id = {run.run_id: run for run in table.runs}
    newest = _newest(table)
    for one in early:
        first, last = by_id.get(one.run_id), by_id.get(one.base_run)
        if first is None or last is None:
            continue
        place = _between(table, first, last)
        same = (s for s in steps if (s["case_key"], s["kind"]) == (one.case_key, one.kind))
        if any(abs(int(s["runs_ago"]) - int(place["runs_ago"])) <= NEAR for s in same):
            continue
        stays = lasting(one.before, one.after, newest.get(one.case_key, one.after))
        yield {
            "kind": one.kind,
            "effect": one.effect,
            "p_value": one.p_value,
            "before": one.before,
            "after": one.after,
            "label": one.label,
            "case_key": one.case_key,
            "kernel": one.kernel,
            "state": NEW if stays else FIXED,
            **place,
        }


def _newest(table: ResultTable) -> dict[str, float]:
    """Return the newest bandwidth of each case, by its key."""
    order = np.argsort(table.run, kind="stable")
    order = order[np.isfinite(table.bandwidth[order])]
    cases, rates = table.case[order].tolist(), table.bandwidth[order].tolist()
    return {table.case_keys[case]: rate for case, rate in zip(cases, rates, strict=True)}


def _people(
    row: Mapping[str, str | float | int],
    commits: Mapping[str, Commit],
    states: Mapping[tuple[str, str, str], Triage],
    gpu: str,
) -> dict[str, str]:
    """Return whose change a row is, and what people said of it."""
    sha = str(row["sha"])
    commit, entry = commits.get(sha), states.get((str(row["case_key"]), gpu, sha))
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
