"""Series from the store as frames for the series chart, the sparklines and their tables."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard import data, orphans
from dashboard.charts.series import SeriesView
from dashboard.data import Snapshot, day, label
from dashboard.gated import Seen
from dashboard.marks import Levelled, environment_changes, level_changes, levelled
from dashboard.metrics import Metric
from dashboard.text import ABSENT, person, plain, short
from tracker.levels import baseline
from tracker.model import Commit
from tracker.queries import RunInfo, Series
from tracker.yardsticks import LAUNCH_BOUND, LAUNCH_BOUND_MEANS, SMALL

Floats = NDArray[np.float64]
# More runs than this are drawn in groups of consecutive runs, and the page says so.
MAX_POINTS = 400
# Each measurement is a mark of the browser's: more than these take it longer than all the rest.
MAX_DOTS, FEW_DOTS = 2000, 500


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a series to show: the last so many commits or days, up to a commit."""

    unit: str
    number: int
    until: str | None = None


def cut(series: Series, window: Window) -> NDArray[np.int64]:
    """Return the indices of the results inside a window, in order."""
    keep = np.arange(len(series))
    if window.until is not None:
        found = np.flatnonzero(np.char.startswith(series.sha, window.until))
        keep = keep[: int(found[-1]) + 1] if found.size else keep[:0]
    if not keep.size or not window.number:
        return keep
    if window.unit == "days":
        newest = float(series.started[keep].max())
        return keep[series.started[keep] >= newest - window.number * 86400]
    shas = series.sha[keep]
    wanted = set(list(dict.fromkeys(shas[::-1].tolist()))[: window.number])
    return keep[np.isin(shas, list(wanted))]


def has(series: Series, sha: str) -> bool:
    """Return whether a series has a result of a commit, given by its id or the beginning of it."""
    return bool(np.char.startswith(series.sha, sha).any())


def values(series: Series, metric: Metric) -> tuple[Floats, Floats, Floats]:
    """Return median, lower and upper quartile of a metric, in base units."""
    if metric.name == "time":
        return series.median_s, series.q1_s, series.q3_s
    top = series.bytes_moved / (series.copy_bytes_per_s if metric.name == "copy" else 1.0)
    # The slowest quarter of the times is the lowest quarter of the rates.
    return top / series.median_s, top / series.q3_s, top / series.q1_s


def points(
    several: Sequence[Levelled],
    window: Window,
    metric: Metric,
) -> pd.DataFrame:
    """Return one row a result: `charts.series.SeriesView.points` without texts, and more."""
    parts = [_part(one, cut(one.series, window), metric) for one in several]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if not len(frame):
        return frame
    places = merged([part["run_id"].to_list() for part in parts], _starts(frame))
    frame["position"] = [places[run_id] for run_id in frame["run_id"]]
    frame["edge"] = frame["position"] - 0.5
    return frame


def _starts(frame: pd.DataFrame) -> dict[str, float]:
    return dict(zip(frame["run_id"].to_list(), frame["started"].to_list(), strict=True))


def merged(orders: Sequence[Sequence[str]], starts: Mapping[str, float]) -> dict[str, int]:
    """Return one place for each run, keeping every order; the earlier start first where free."""
    after: dict[str, set[str]] = {}
    waiting: dict[str, int] = {run: 0 for order in orders for run in order}
    for order in orders:
        for first, second in pairwise(order):
            if second not in after.setdefault(first, set()):
                after[first].add(second)
                waiting[second] += 1
    ready = [(starts[run], run) for run, count in waiting.items() if not count]
    heapq.heapify(ready)
    places: dict[str, int] = {}
    while ready:
        _, run = heapq.heappop(ready)
        places[run] = len(places)
        for later in after.get(run, ()):
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (starts[later], later))
    return places


def _part(one: Levelled, keep: NDArray[np.int64], metric: Metric) -> pd.DataFrame:
    series = one.series
    whole = values(series, metric)
    value, low, high = (column[keep] for column in whole)
    shas = series.sha[keep].tolist()
    status = series.status[keep].tolist()
    started = series.started[keep]
    return pd.DataFrame(
        {
            "run_id": series.run_id[keep].tolist(),
            "result": series.result[keep],
            "full_sha": shas,
            "sha": [short(sha) for sha in shas],
            "started": started,
            "date": pd.to_datetime(started, unit="s", utc=True),
            "line": label(series.case),
            "case_key": series.case.fingerprint,
            "value": value,
            "low": low,
            "high": high,
            "baseline": baseline(one.course, one.steps, whole[0])[keep],
            "count": series.count[keep],
            "median_s": series.median_s[keep],
            "q1_s": series.q1_s[keep],
            "q3_s": series.q3_s[keep],
            "bandwidth_bytes_per_s": series.bandwidth[keep],
            "copy_fraction": series.copy_fraction[keep],
            "status": status,
            "trusted": np.where(one.course.trusted[keep], "yes", "no"),
            "note": _notes(series, keep),
            "environment": series.environment[keep],
        }
    )


def _notes(series: Series, keep: NDArray[np.int64]) -> list[str]:
    flags = (
        (series.dirty[keep], "uncommitted changes"),
        (series.shared[keep], "the device was shared"),
        (~series.complete[keep], "a part of the suite"),
    )
    told: dict[int, list[str]] = {}
    for flag, words in flags:
        for i in np.flatnonzero(flag).tolist():
            told.setdefault(i, []).append(words)
    return ["; ".join(told.get(i, ())) for i in range(len(keep))]


def _with_texts(
    frame: pd.DataFrame, commits: Mapping[str, Commit], left: Collection[str]
) -> pd.DataFrame:
    """Return the frame with what people read of each point: subject, author, measured."""
    known = [commits.get(sha) for sha in frame["full_sha"].to_list()]
    return frame.assign(
        subject=[plain(commit.subject, 90) if commit else ABSENT for commit in known],
        note=[
            "; ".join(filter(None, (note, orphans.LEFT_GIT if sha in left else "")))
            for note, sha in zip(frame["note"], frame["full_sha"], strict=True)
        ],
        author=[person(commit.author) if commit else ABSENT for commit in known],
        measured=[day(when) for when in frame["started"].to_list()],
    )


def grouped(frame: pd.DataFrame, limit: int = MAX_POINTS) -> tuple[pd.DataFrame, int]:
    """Return the frame with at most `limit` places, and how many runs stand in each of them.

    A group's value is the median of its runs' medians, its band reaches from the lowest quartile to
    the highest, and its commit is the newest.
    """
    places = int(frame["position"].max()) + 1 if len(frame) else 0
    size = -(-places // limit) if places else 1
    if size <= 1:
        return frame, 1
    group = frame.assign(bin=frame["position"] // size)
    rules: dict[str, str] = dict.fromkeys(frame.columns, "last")
    rules |= {"value": "median", "low": "min", "high": "max", "baseline": "median"}
    rules |= {"median_s": "median", "bandwidth_bytes_per_s": "median", "copy_fraction": "median"}
    found = group.groupby(["line", "bin"], sort=False, as_index=False).agg(
        {column: rule for column, rule in rules.items() if column != "line"}
    )
    found["position"] = found["bin"]
    found["edge"] = found["position"] - 0.5
    return found.drop(columns="bin"), size


@dataclass(frozen=True, slots=True)
class History:
    """Series ready to draw: points, and what goes with them; `every` has all runs, not groups.

    `drifts` are the names of cases that drift, each with the relative change of its bandwidth.
    """

    points: pd.DataFrame
    every: pd.DataFrame
    metric: Metric
    measurements: pd.DataFrame
    environments: pd.DataFrame
    changes: pd.DataFrame
    group: int
    thinned: bool
    drifts: Sequence[tuple[str, float]] = ()

    def view(self, look: Mapping[str, str]) -> SeriesView:
        """Return what the series chart draws, looked at in a way (axis, zero, log)."""
        return SeriesView(
            self.points,
            self.metric,
            self.measurements,
            self.changes,
            self.environments,
            axis="date" if look["axis"] == "date" else "commit",
            zero=look["zero"] == "True",
            log=look["log"] == "True",
        )

    @property
    def launch_bound(self) -> str:
        """What to say of the cases that are launch-bound in a run that is shown, if there is one.

        Then their bandwidth, and its fraction of a copy's, is no measure of the memory.
        """
        names = dict.fromkeys(self.points.loc[self.points["launch_bound"], "line"])
        told = f"{LAUNCH_BOUND}: {', '.join(names)}; {LAUNCH_BOUND_MEANS}"
        return told if names else ""

    def chosen(self, picked: object) -> tuple[str, Mapping[str, object]]:
        """Return the run and the row of the selected point, the newest without a selection."""
        clicks = picked if isinstance(picked, list) else []
        wanted = {(click.get("run_id"), click.get("line")) for click in clicks}
        keys = zip(self.points["run_id"], self.points["line"], strict=True)
        found = self.points[[key in wanted for key in keys]]
        last = self.points[self.points["position"] == self.points["position"].max()]
        row = (found if len(found) else last).iloc[0]
        return str(row["run_id"]), {str(name): value for name, value in row.items()}

    def before(self, case_key: str, run_id: str) -> str | None:
        """Return the run before this one in the series of a case."""
        part = self.every[self.every["case_key"] == case_key]
        ids = part.sort_values("position")["run_id"].to_list()
        place = ids.index(run_id) if run_id in ids else 0
        return str(ids[place - 1]) if place else None

    def ended(self, newest: RunInfo | None) -> list[tuple[str, str]]:
        """Return the cases that the newest complete run lacks, and when each was measured last."""
        if newest is None or not newest.complete:
            return []
        last = self.every.sort_values("started").groupby("line", sort=False, observed=True).tail(1)
        return [
            (str(row["line"]), f"{day(float(row['started']))} UTC, commit {row['sha']}")
            for row in last.to_dict("records")
            if float(row["started"]) < newest.started
        ]


def with_floors(snapshot: Snapshot, frame: pd.DataFrame) -> pd.DataFrame:
    """Return points with what an empty kernel took beside each.

    More columns: floor_s, empty_s (of small times only) and launch_bound, which the note says too.
    """
    beside = data.floors(snapshot, tuple(int(i) for i in frame["result"].to_list()))
    small = frame["median_s"].to_numpy(np.float64) < SMALL * beside.floor_s
    return frame.assign(
        floor_s=beside.floor_s,
        empty_s=np.where(small, beside.floor_s, np.nan),
        launch_bound=beside.launch_bound,
        note=[
            "; ".join(filter(None, (LAUNCH_BOUND if bound else "", note)))
            for bound, note in zip(beside.launch_bound.tolist(), frame["note"], strict=True)
        ],
    )


def load(
    snapshot: Snapshot,
    several: Sequence[Series],
    window: Window,
    metric: Metric,
    *,
    dots: int = MAX_DOTS,
    seen: Sequence[Seen] = (),
) -> History:
    """Return series ready to draw, at most six; a single one with so many measurements at most.

    `seen` are changes that the gate told; those that no change point tells are marked too.
    """
    found = [levelled(series) for series in several]
    every = points(found, window, metric)
    shown, group = grouped(every) if len(every) else (every, 1)
    if len(shown):
        shas = tuple(dict.fromkeys(sha for sha in shown["full_sha"].to_list() if sha))
        left = orphans.left_git(snapshot)
        shown = with_floors(snapshot, _with_texts(shown, data.commits(snapshot, shas), left))
    measured, thinned = (
        _measurements(snapshot, every, several[0], metric, dots)
        if len(several) == 1 and group == 1 and len(every)
        else (pd.DataFrame(), False)
    )
    environments = environment_changes(several, every) if len(every) and group == 1 else every[:0]
    changes = level_changes(found, every, group, seen) if len(every) else every[:0]
    drifts = [(label(one.series.case), one.drift) for one in found if one.drift is not None]
    return History(shown, every, metric, measured, environments, changes, group, thinned, drifts)


def _measurements(
    snapshot: Snapshot, frame: pd.DataFrame, series: Series, metric: Metric, dots: int
) -> tuple[pd.DataFrame, bool]:
    """Return measurements to draw as faint dots, evenly thinned to so many of all runs."""
    each = dots // max(1, len(frame))
    found = data.measurements(snapshot, tuple(int(i) for i in frame["result"].to_list()))
    scale = dict(zip(series.result.tolist(), _per_second(series, metric), strict=True))
    rows: list[pd.DataFrame] = []
    thinned = False
    for row, times in zip(frame.to_dict("records"), found, strict=True):
        kept = times
        if times.size > each:
            kept, thinned = np.quantile(times, np.linspace(0, 1, each)) if each else times[:0], True
        top = scale[int(row["result"])]
        value = kept if metric.name == "time" else top / kept
        rows.append(
            pd.DataFrame(
                {
                    "position": row["position"],
                    "date": row["date"],
                    "line": row["line"],
                    "value": value,
                }
            )
        )
    return pd.concat(rows, ignore_index=True), thinned


def _per_second(series: Series, metric: Metric) -> list[float]:
    copy = series.copy_bytes_per_s if metric.name == "copy" else 1.0
    return [float(value) for value in series.bytes_moved / copy]
