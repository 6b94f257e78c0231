"""What is marked in a chart of series: changes of level, and changes of environment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dashboard.charts.series import change_label
from dashboard.gated import NEAR, Seen
from dashboard.metrics import change
from dashboard.session import thresholds
from dashboard.text import plain
from tracker.levels import Course, Step, drift, steps, trusted
from tracker.model import VerdictKind
from tracker.queries import Series
from tracker.sides import environment_difference


@dataclass(frozen=True, slots=True)
class Levelled:
    """A series with its changes of level and its drift, searched over the whole of it."""

    series: Series
    course: Course
    steps: Sequence[Step]
    drift: float | None


def levelled(series: Series) -> Levelled:
    """Return a series with its changes of level."""
    course = course_of(series)
    policy = thresholds().policy
    found = steps(course, policy)
    return Levelled(series, course, found, drift(course, found, policy))


def course_of(series: Series) -> Course:
    """Return what the search for levels needs of a series."""
    return Course(
        bandwidth=series.bandwidth,
        copy_fraction=series.copy_fraction,
        environment=[series.environment_keys[i] for i in series.environment],
        device=[str(number) for number in series.device],
        trusted=trusted(series.status, series.shared),
    )


def environment_changes(several: Sequence[Series], frame: pd.DataFrame) -> pd.DataFrame:
    """Return where the environment of a series differs from that of its result before.

    Columns: position, edge, date, text (what differs).
    """
    rows: dict[int, dict[str, object]] = {}
    for series in several:
        part = frame[frame["case_key"] == series.case.fingerprint]
        indices, places = part["environment"].to_list(), part["position"].to_list()
        dates = part["date"].to_list()
        for i in range(1, len(part)):
            before, after = (series.environments[indices[j]] for j in (i - 1, i))
            if differs := environment_difference(before, after):
                rows.setdefault(
                    places[i],
                    {
                        "position": places[i],
                        "edge": places[i] - 0.5,
                        "date": dates[i],
                        "text": plain("; ".join(differs), 160),
                    },
                )
    return pd.DataFrame(list(rows.values()), columns=["position", "edge", "date", "text"])


def _marks(one: Levelled, seen: Sequence[Seen]) -> list[tuple[str, float]]:
    """Return the first run and the size of each change of a series, the gate's where alone."""
    runs = one.series.run_id.tolist()
    steps = [(step.index, step.effect) for step in one.steps]
    mine = [s for s in seen if s.case_key == one.series.case.fingerprint and s.run_id in runs]
    alone = [
        (runs.index(s.run_id), s.effect)
        for s in mine
        if not any(
            abs(runs.index(s.run_id) - place) <= NEAR and effect * s.effect > 0
            for place, effect in steps
        )
    ]
    return [(str(runs[place]), effect) for place, effect in (*steps, *alone)]


def level_changes(
    several: Sequence[Levelled], frame: pd.DataFrame, group: int, seen: Sequence[Seen] = ()
) -> pd.DataFrame:
    """Return the changes inside the frame: edge, date, kind, label, sha, line.

    The search is over each whole series, so that a window does not change what is found.
    """
    rows = []
    for one in several:
        marks = _marks(one, seen)
        if not marks:
            continue
        part = frame[frame["case_key"] == one.series.case.fingerprint].set_index("run_id")
        for run_id, effect in marks:
            if run_id not in part.index:
                continue
            row = part.loc[run_id].to_dict()
            kind = VerdictKind.REGRESSION if effect < 0 else VerdictKind.IMPROVEMENT
            rows.append(
                {
                    "edge": int(row["position"]) // group - 0.5,
                    "date": row["date"],
                    "kind": kind.value,
                    "effect": effect,
                    "sha": row["sha"],
                    "line": row["line"],
                }
            )
    return one_a_place(rows)


def one_a_place(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return changes with one label for those of a kind at one place: the largest and how many."""
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["edge"], row["kind"]), []).append(row)
    found = []
    for (_, kind), several in groups.items():
        largest = max(several, key=lambda row: abs(row["effect"]))
        more = f" ({len(several)} cases)" if len(several) > 1 else ""
        label = change_label(VerdictKind(kind), change(largest["effect"])) + more
        found.append(largest | {"label": label})
    return pd.DataFrame(found, columns=["edge", "date", "kind", "label", "sha", "line"])
