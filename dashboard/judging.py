"""Verdicts on a run or between two, as rows that tables and charts show."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan, nan

import pandas as pd

from dashboard.data import Snapshot, cached, label
from dashboard.metrics import change
from dashboard.palette import OUTCOMES, Palette
from dashboard.session import thresholds
from dashboard.text import plain
from tracker import queries
from tracker.gate import Gate, compare_runs
from tracker.judged_again import judge_meant
from tracker.model import Result, VerdictKind
from tracker.occasion import Meant
from tracker.reasons import ReasonCode
from tracker.report import judged as report
from tracker.report.judged import Judged
from tracker.report.verdicts import mean_change
from tracker.store import Store
from tracker.verdict import Verdict
from tracker.yardsticks import launch_bound

NOT_RUN = "not run"
# In the order of a report; a case that vanished asks for action as much as a slower one.
ORDER = (*report.OUTCOMES[:3], NOT_RUN, *report.OUTCOMES[3:])
_ALWAYS = ("regression", "improvement", "no change", "undecided", NOT_RUN)
# What asks for attention: changed, wrong or missing.
DECIDED = frozenset({"regression", "improvement", "incorrect", "error", NOT_RUN})
_COLUMNS = (
    *("outcome", "label", "case_key", "kernel", "implementation", "dtype"),
    *("effect", "low", "high", "p_value", "detectable", "metric"),
    *("base_s", "head_s", "base_bandwidth", "head_bandwidth", "base_run", "since"),
    *("reason", "decide", "floor_s", "launch_bound"),
)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on a run: one row a case, those that ask for action first.

    `mean` is the geometric mean of the changes of bandwidth over the `shared` cases that both sides
    measured; `notes` are remarks on the settings.
    """

    rows: pd.DataFrame
    mean: float | None
    shared: int
    notes: tuple[str, ...]

    def count(self, outcome: str) -> int:
        """Return how many cases came out so."""
        return int((self.rows["outcome"] == outcome).sum())

    @property
    def decided(self) -> pd.DataFrame:
        """The rows that ask for attention: changed, wrong or missing."""
        return self.rows[self.rows["outcome"].isin(DECIDED)]


@cached
def of_run(store: Store, run_id: str, repeats: tuple[str, ...] = ()) -> Verdicts:
    """Return the verdicts on a run against its baselines.

    `repeats` are runs that measured some of its cases again, whose verdicts stand instead.
    """
    run, *again = (queries.find_run(store, name) for name in (run_id, *repeats))
    asked = Meant(run, repeats=tuple(again))
    gate = judge_meant(store, asked, thresholds(), today=datetime.now(UTC).date())
    bases = [base.run_id for base in queries.candidates(store, run)]
    return _verdicts(gate, bases)


def of_meant(snapshot: Snapshot, meant: Meant) -> Verdicts:
    """Return the verdicts on a run with what measured its cases again, as the command does."""
    again = tuple(run.run_id for run in meant.repeats)
    # Most have none: then it is what was computed of the run alone.
    return of_run(snapshot, meant.run.run_id, *((again,) if again else ()))


@cached
def between(store: Store, base_id: str, head_id: str) -> Verdicts:
    """Return the verdicts of head against base on the cases that both measured."""
    base, head = queries.find_run(store, base_id), queries.find_run(store, head_id)
    gate = compare_runs(store, base, head, thresholds(), today=datetime.now(UTC).date())
    return _verdicts(gate, [base.run_id])


def outcome(judged: Judged) -> str:
    """Return what became of a case, with `not run` for one that vanished."""
    return NOT_RUN if judged.verdict.has(ReasonCode.VANISHED) else judged.outcome


def _verdicts(gate: Gate, bases: list[str]) -> Verdicts:
    rows = [_row(item, bases) for item in gate.judged]
    rows.sort(key=lambda row: (ORDER.index(str(row["outcome"])), _size(row), str(row["label"])))
    mean, shared = mean_change(gate.judged)
    return Verdicts(pd.DataFrame(rows, columns=list(_COLUMNS)), mean, shared, gate.notes)


def _size(row: dict[str, str | float]) -> float:
    effect = float(row["effect"])
    return 0.0 if isnan(effect) else -abs(effect)


def _row(judged: Judged, bases: list[str]) -> dict[str, str | float]:
    verdict = judged.verdict
    low, high = verdict.interval or (nan, nan)
    base_s = next((e.base for e in verdict.evidence if e.metric == "time"), nan)
    moved = judged.result.bytes_moved if judged.result else None
    return {
        "outcome": outcome(judged),
        "label": label(verdict.case),
        "case_key": verdict.case.fingerprint,
        "kernel": verdict.case.kernel,
        "implementation": verdict.case.implementation,
        "dtype": verdict.case.dtype,
        "effect": _number(verdict.effect),
        "low": low,
        "high": high,
        "p_value": _number(verdict.p_value),
        "detectable": _number(verdict.detectable),
        "metric": verdict.metric or "",
        "base_s": base_s,
        "head_s": _number(_median(judged.result)),
        "base_bandwidth": moved / base_s if moved else nan,
        "head_bandwidth": _number(judged.result.bandwidth if judged.result else None),
        "base_run": next((run for run in bases if run in verdict.baseline_rule), ""),
        "since": verdict.since or "",
        "reason": plain("; ".join(_reasons(verdict)), 400),
        "decide": plain(verdict.what_would_decide, 300) if verdict.what_would_decide else "",
        "floor_s": _number(judged.result.peaks.floor_s if judged.result else None),
        "launch_bound": judged.result is not None and launch_bound(judged.result),
    }


def _reasons(verdict: Verdict) -> Iterator[str]:
    if verdict.waived:
        yield f"let pass: {verdict.waived}"
    yield from (reason.message for reason in verdict.reasons)


def _median(result: Result | None) -> float | None:
    return result.summary.median_s if result is not None and result.summary else None


def _number(value: float | None) -> float:
    return nan if value is None else value


def by_certainty(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with what is wrong first, then the surest, then the largest change."""
    wrong = rows["outcome"].isin({"incorrect", "error", NOT_RUN})
    keys = pd.DataFrame(
        {"wrong": ~wrong, "p": rows["p_value"].fillna(2.0), "size": -rows["effect"].abs()}
    )
    return rows.loc[keys.sort_values(["wrong", "p", "size"], kind="stable").index]


def kinds(rows: pd.DataFrame) -> list[str]:
    """Return the kind of verdict of each row, undecided where the outcome is no kind."""
    known = {str(kind) for kind in VerdictKind}
    return [name if name in known else str(VerdictKind.UNDECIDED) for name in rows["outcome"]]


def counts(verdicts: Verdicts, colours: Palette) -> list[tuple[str, str, str]]:
    """Return how many cases came out how, and the mean change, for `facts.counts`."""
    found = []
    for name in (*_ALWAYS, "no baseline", "incorrect", "error"):
        count = verdicts.count(name)
        arrow, words = OUTCOMES[name].text.split(" ", 1)
        if count or name in _ALWAYS:
            found.append(
                (f"{arrow} {count}", words, _shade(name, colours) if count else colours.muted)
            )
    if verdicts.mean is not None:
        cases = "1 shared case" if verdicts.shared == 1 else f"{verdicts.shared} shared cases"
        told = f"bandwidth, geometric mean of {cases}"
        found.append((change(verdicts.mean), told, colours.text))
    return found


def _shade(name: str, colours: Palette) -> str:
    if name == "improvement":
        return colours.improvement
    return colours.regression if name in DECIDED else colours.unchanged
