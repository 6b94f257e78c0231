"""What asks for attention, as one table: what, how much, how sure, since when."""

from collections.abc import Mapping, Sequence
from math import isnan

import pandas as pd
import streamlit as st

from dashboard import changes, data
from dashboard.changes import FIXED, NEW, OPEN
from dashboard.charts.base import plural
from dashboard.data import Snapshot
from dashboard.history import Window
from dashboard.judging import ORDER, Verdicts
from dashboard.metrics import certainty
from dashboard.palette import OUTCOMES
from dashboard.tables import selected, shown_change, verdict_column
from dashboard.text import ABSENT, person, plain, short
from tracker import units
from tracker.model import Commit
from tracker.queries import RunInfo
from tracker.yardsticks import LAUNCH_BOUND

# The change points of so many commits are findings.
WINDOW = Window("commits", 50)
# More models than this have no findings on the overview; choose one to see them.
MAX_MODELS = 4
# More findings than this are on the page of changes only.
MAX_ROWS = 100
_TREND_RUNS = 30
_COLUMNS = (
    *("outcome", "effect", "label", "case_key", "before", "after", "p_value", "sha"),
    *("subject", "author", "started", "run_id", "base_run", "state", "reason", "gpu", "trend"),
)


def of_run(
    snapshot: Snapshot, run: RunInfo, verdicts: Verdicts, branch: str | None
) -> pd.DataFrame:
    """Return what asks for attention in the newest run of a GPU model and on its branch lately."""
    gpu = run.gpu_model
    steps = changes.found(snapshot, gpu, branch, WINDOW.unit, WINDOW.number)
    found = together(from_verdicts(snapshot, verdicts, run), from_changes(steps))
    cases = tuple(dict.fromkeys(found["case_key"].head(MAX_ROWS)))
    trends = data.trends(snapshot, gpu, branch, cases, _TREND_RUNS) if cases else {}
    rows = verdicts.rows
    bound = rows.loc[rows["launch_bound"].astype(bool), "case_key"]
    latest = pd.Series([trends.get(case, []) for case in found["case_key"]], dtype=object)
    return found.assign(gpu=gpu, trend=latest, launch_bound=found["case_key"].isin(bound))


def from_verdicts(snapshot: Snapshot, verdicts: Verdicts, run: RunInfo) -> pd.DataFrame:
    """Return the decided verdicts on a run as findings; since when, where the verdict knows it."""
    rows = verdicts.decided.to_dict("records")
    shas = tuple(dict.fromkeys(str(row["since"]) or run.sha or "" for row in rows))
    commits = data.commits(snapshot, shas) if rows else {}
    return pd.DataFrame(
        [
            {
                "outcome": row["outcome"],
                "effect": row["effect"],
                "label": row["label"],
                "case_key": row["case_key"],
                "before": row["base_bandwidth"],
                "after": row["head_bandwidth"],
                "p_value": row["p_value"],
                "started": run.started,
                "run_id": run.run_id,
                "base_run": row["base_run"],
                "state": "",
                "reason": row["reason"],
                **_whose(commits, str(row["since"]) or run.sha or ""),
            }
            for row in rows
        ],
        columns=list(_COLUMNS),
    )


def _whose(commits: Mapping[str, Commit], sha: str) -> dict[str, str]:
    commit = commits.get(sha)
    return {
        "sha": sha,
        "subject": plain(commit.subject, 90) if commit else ABSENT,
        "author": person(commit.author) if commit else ABSENT,
    }


def from_changes(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the open changes as findings, and the losses that were made good lately."""
    open_ones = steps["state"].isin(OPEN)
    mended = (steps["state"] == FIXED) & (steps["effect"] < 0)
    rows = steps[open_ones | mended]
    reasons = [
        f"level changed {_ago(int(runs))}, {state}" + (f": {note}" if note else "")
        for runs, state, note in zip(rows["runs_ago"], rows["state"], rows["note"], strict=True)
    ]
    return rows.assign(outcome=rows["kind"], reason=reasons).reindex(columns=list(_COLUMNS))


def _ago(runs: int) -> str:
    return "in the newest run" if runs == 0 else f"{plural(runs, 'run')} ago"


def together(verdicts: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Return findings in the order of attention.

    What is wrong or missing comes first, then losses before gains, what is open before what was
    made good, each by size. A change says since when, so it replaces the verdict of the newest run
    in its direction on the same case.
    """
    known = set(zip(steps["case_key"], steps["outcome"], strict=True))
    fresh = verdicts[
        [key not in known for key in zip(verdicts["case_key"], verdicts["outcome"], strict=True)]
    ]
    return ordered([fresh, steps])


def ordered(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return findings of several sources in the order of attention."""
    filled = [part for part in parts if len(part)] or [pd.DataFrame(columns=list(_COLUMNS))]
    both = pd.concat(filled, ignore_index=True)
    keys = pd.DataFrame(
        {
            "rank": [ORDER.index(str(name)) for name in both["outcome"]],
            "closed": both["state"] == FIXED,
            "size": -both["effect"].astype(float).abs(),
        }
    )
    return both.loc[keys.sort_values(["rank", "closed", "size"], kind="stable").index].reset_index(
        drop=True
    )


def table(found: pd.DataFrame, *, several: bool, key: str) -> int:
    """Draw findings and return the place of the selected row, the first without a selection.

    With `several` GPU models each row says whose it is.
    """
    shown = pd.DataFrame(
        {
            "verdict": [_pills(outcome, state) for outcome, state in _both(found)],
            "change": [shown_change(value) for value in found["effect"]],
            "case": found["label"],
            "gpu": [name.removeprefix("NVIDIA ") for name in found["gpu"]],
            "trend": found["trend"],
            "bandwidth": [
                from_to(before, after) + (f", {LAUNCH_BOUND}" if bound else "")
                for before, after, bound in zip(
                    found["before"], found["after"], found["launch_bound"], strict=True
                )
            ],
            "sure": [certainty(value) for value in found["p_value"]],
            "since": [short(sha) for sha in found["sha"]],
            "author": found["author"],
            "subject": found["subject"],
        }
    )
    states = any(state for _, state in _both(found))
    event = st.dataframe(
        shown if several else shown.drop(columns="gpu"),
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        alt="What asks for attention, worst first.",
        column_config={
            "verdict": verdict_column(width=150 if states else 90, states=(FIXED, *OPEN[1:])),
            "change": st.column_config.TextColumn("Change", alignment="right", width=64),
            "case": "Case",
            "gpu": st.column_config.TextColumn("GPU", width=80),
            "trend": st.column_config.LineChartColumn("Latest runs", width=80),
            "bandwidth": st.column_config.TextColumn(
                "GB/s", width=190 if found["launch_bound"].any() else 96
            ),
            "sure": st.column_config.TextColumn("Certainty", width=78),
            "since": st.column_config.TextColumn("Since", width=70),
            "author": "Whose",
            "subject": st.column_config.TextColumn("Subject", width="medium"),
        },
    )
    return selected(event)


def _both(found: pd.DataFrame) -> list[tuple[str, str]]:
    states = ["" if state == NEW else str(state) for state in found["state"]]
    return list(zip([str(name) for name in found["outcome"]], states, strict=True))


def _pills(outcome: str, state: str) -> list[str]:
    return [OUTCOMES[outcome].text, *([state] if state else [])]


def from_to(before: float, after: float) -> str:
    """Return how a bandwidth changed, in GB/s: `4160 to 3970`."""
    if isnan(before) and isnan(after):
        return ABSENT
    told = [ABSENT if isnan(v) else units.significant(v / 1e9, 4) for v in (before, after)]
    return f"{told[0]} to {told[1]}"
