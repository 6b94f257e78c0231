"""What asks for attention on one GPU model, as one table: what, how much, how sure, since when."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import changes, data
from dashboard.changes import OPEN
from dashboard.charts.base import plural
from dashboard.data import Snapshot
from dashboard.history import Window
from dashboard.judging import ORDER, Verdicts
from dashboard.metrics import certainty
from dashboard.palette import OUTCOMES
from dashboard.tables import shown_change, shown_rate, verdict_column
from dashboard.text import ABSENT, person, plain, short
from tracker.queries import RunInfo

# The change points of so many commits are findings.
WINDOW = Window("commits", 50)
# More models than this have no findings on the overview; choose one to see them.
MAX_MODELS = 4
_TREND_RUNS = 30
_COLUMNS = (
    *("outcome", "effect", "label", "case_key", "before", "after", "p_value", "sha"),
    *("subject", "author", "started", "run_id", "base_run", "reason"),
)


@dataclass(frozen=True, slots=True)
class Attention:
    """A GPU model's newest run, what asks for attention, and the latest bandwidths by case."""

    run: RunInfo
    found: pd.DataFrame
    trends: Mapping[str, list[float]]


def of_run(snapshot: Snapshot, run: RunInfo, verdicts: Verdicts, branch: str | None) -> Attention:
    """Return what asks for attention in the newest run of a GPU model and on its branch lately."""
    gpu = run.gpu_model
    steps = changes.found(snapshot, gpu, branch, WINDOW.unit, WINDOW.number)
    found = together(from_verdicts(verdicts, run), from_changes(steps))
    cases = tuple(dict.fromkeys(found["case_key"]))
    trends = data.trends(snapshot, gpu, branch, cases, _TREND_RUNS) if cases else {}
    return Attention(run, found, trends)


def from_verdicts(verdicts: Verdicts, run: RunInfo) -> pd.DataFrame:
    """Return the decided verdicts on a run as findings."""
    commit = run.checkout.commit
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
                "sha": run.sha or "",
                "subject": plain(commit.subject, 90) if commit else ABSENT,
                "author": person(commit.author) if commit else ABSENT,
                "started": run.started,
                "run_id": run.run_id,
                "base_run": row["base_run"],
                "reason": row["reason"],
            }
            for row in verdicts.decided.to_dict("records")
        ],
        columns=list(_COLUMNS),
    )


def from_changes(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the open change points as findings."""
    rows = steps[steps["state"].isin(OPEN)]
    return pd.DataFrame(
        {
            "outcome": rows["kind"],
            "effect": rows["effect"],
            "label": rows["label"],
            "case_key": rows["case_key"],
            "before": rows["before"],
            "after": rows["after"],
            "p_value": rows["p_value"],
            "sha": rows["sha"],
            "subject": rows["subject"],
            "author": rows["author"],
            "started": rows["started"],
            "run_id": rows["run_id"],
            "base_run": rows["base_run"],
            "reason": [
                f"level changed {_ago(int(runs))}, {state}" + (f": {note}" if note else "")
                for runs, state, note in zip(
                    rows["runs_ago"], rows["state"], rows["note"], strict=True
                )
            ],
        }
    )


def _ago(runs: int) -> str:
    return "in the newest run" if runs == 0 else f"{plural(runs, 'run')} ago"


def together(verdicts: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Return findings in the order of attention, one for a case.

    What is wrong or missing comes first, then losses before gains, each by size. A change point
    says since when, so it replaces the verdict of the newest run on the same case.
    """
    known = set(steps["case_key"])
    fresh = verdicts[
        ~(
            verdicts["case_key"].isin(known)
            & verdicts["outcome"].isin(["regression", "improvement"])
        )
    ]
    both = pd.concat([fresh, steps], ignore_index=True)
    rank = [ORDER.index(str(name)) for name in both["outcome"]]
    keys = pd.DataFrame({"rank": rank, "size": -both["effect"].abs()})
    return both.loc[keys.sort_values(["rank", "size"], kind="stable").index].reset_index(drop=True)


def table(told: Attention, *, key: str, described: str) -> int | None:
    """Draw the findings and return the place of the selected row, None without a selection."""
    found = told.found
    shown = pd.DataFrame(
        {
            "verdict": [[OUTCOMES[outcome].text] for outcome in found["outcome"]],
            "change": [shown_change(value) for value in found["effect"]],
            "case": found["label"],
            "trend": [told.trends.get(case, []) for case in found["case_key"]],
            "now": [shown_rate(value) for value in found["after"]],
            "was": [shown_rate(value) for value in found["before"]],
            "sure": [certainty(value) for value in found["p_value"]],
            "since": [short(sha) for sha in found["sha"]],
            "subject": found["subject"],
            "author": found["author"],
            "when": [data.day(when)[:10] for when in found["started"]],
        }
    )
    event = st.dataframe(
        shown,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        alt=described,
        column_config={
            "verdict": verdict_column(),
            "change": st.column_config.TextColumn("Change", alignment="right"),
            "case": "Case",
            "trend": st.column_config.LineChartColumn("Latest runs", width="small"),
            "now": "Now",
            "was": "Before",
            "sure": "Certainty",
            "since": "Since",
            "subject": st.column_config.TextColumn("Subject", width="medium"),
            "author": "Whose",
            "when": "On",
        },
    )
    rows = event["selection"]["rows"]
    return int(rows[0]) if rows else None
