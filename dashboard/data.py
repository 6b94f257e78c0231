"""What pages read, cached by the store's revision: equal revisions mean equal content.

Nothing expires: a new revision makes new entries, and the oldest are dropped. Every reader takes a
snapshot first; the store's name and its revision are a part of the key, the open store is not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from math import inf
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard.order import in_commit_order
from dashboard.text import short
from tracker import occasion, queries, yardsticks
from tracker.errors import NotFoundError
from tracker.model import Case, Commit, Result, Warn
from tracker.occasion import Meant
from tracker.queries import Floors, ModelInfo, RunInfo, Series
from tracker.store import Store

Floats = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A store at one revision: what every read starts from."""

    store: Store
    revision: int


def cached(function: Callable[Concatenate[Store, P], T]) -> Callable[Concatenate[Snapshot, P], T]:
    """Return `function` on a snapshot, its 64 newest results kept and copied at each use."""

    def read(at: tuple[str, int], _store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        del at  # a part of the key only
        return function(_store, *args, **kwargs)

    # Streamlit tells cached functions apart by these names and the source.
    read.__qualname__, read.__module__ = function.__qualname__, function.__module__
    kept = st.cache_data(max_entries=64, show_spinner=False)(read)

    @wraps(function)
    def on_snapshot(snapshot: Snapshot, *args: P.args, **kwargs: P.kwargs) -> T:
        return kept((snapshot.store.name, snapshot.revision), snapshot.store, *args, **kwargs)

    return cast("Callable[Concatenate[Snapshot, P], T]", on_snapshot)


@cached
def models(store: Store) -> tuple[ModelInfo, ...]:
    """Return the GPU models in the store: by their newest run of the suite, the latest first.

    Models that have none come last, by their newest run.
    """
    known = [
        (model, occasion.newest(store, gpu_model=model.name)) for model in queries.gpu_models(store)
    ]
    known.sort(key=lambda pair: -pair[1].run.started if pair[1] else inf)
    return tuple(model for model, _ in known)


@cached
def branches(store: Store, gpu: str | None) -> tuple[str, ...]:
    """Return the branches that have clean runs."""
    return queries.branches(store, gpu)


@cached
def catalogue(store: Store) -> tuple[dict[str, str], ...]:
    """Return one row a case and GPU model: what filters offer.

    Keys: gpu, kernel, implementation, dtype, case (its name), case_key. A case that has series in
    several environments has one row.
    """
    rows = (
        {
            "gpu": found.gpu_model,
            "kernel": found.case.kernel,
            "implementation": found.case.implementation,
            "dtype": found.case.dtype,
            "case": label(found.case),
            "case_key": found.case_key,
        }
        for found in queries.series_list(store)
    )
    return tuple({(row["gpu"], row["case_key"]): row for row in rows}.values())


@cached
def meant(store: Store, gpu: str, branch: str | None) -> Meant | None:
    """Return the newest clean run of the suite on a GPU model, on a branch or on any."""
    return occasion.newest(store, gpu_model=gpu, branch=branch, dirty=False)


def newest(snapshot: Snapshot, gpu: str, branch: str | None) -> RunInfo | None:
    """Return the run of `meant` alone."""
    found = meant(snapshot, gpu, branch)
    return found.run if found else None


@cached
def runs(store: Store, gpu: str | None, branch: str | None, limit: int) -> tuple[RunInfo, ...]:
    """Return runs, newest first."""
    return queries.runs(store, gpu_model=gpu, branch=branch, limit=limit)


@cached
def clean_runs(store: Store, gpu: str, branch: str | None, limit: int) -> tuple[RunInfo, ...]:
    """Return the runs of a GPU model without uncommitted changes, newest first."""
    return queries.runs(store, gpu_model=gpu, branch=branch, dirty=False, limit=limit)


@cached
def measured_commits(store: Store) -> frozenset[str]:
    """Return the commits that were measured, those of a demo left out."""
    return queries.measured_commits(store)


@cached
def run(store: Store, run_id: str) -> RunInfo | None:
    """Return a run by its id, or the one that a commit stands for; None where there is none."""
    try:
        return occasion.meant(store, run_id).run
    except NotFoundError:
        return None


@cached
def series(store: Store, case_key: str, gpu: str, branch: str | None) -> Series:
    """Return the results of a case on a GPU model in commit order."""
    return queries.series(store, case_key, gpu, branch=branch)


@cached
def measurements(store: Store, results: tuple[int, ...]) -> tuple[Floats, ...]:
    """Return the measurements of results by the store's ids, in seconds."""
    return queries.measurements(store, results)


@cached
def floors(store: Store, results: tuple[int, ...]) -> Floors:
    """Return what an empty kernel took beside results, by the store's ids."""
    return queries.floors(store, results)


@cached
def changed_most(
    store: Store, gpu: str, branch: str | None, case_keys: tuple[str, ...], runs_back: int
) -> tuple[str, ...]:
    """Return cases by how much their median time moved over the last runs, the most first.

    The middle of the first three runs, in commit order, against that of the last three; cases
    without both go last.
    """
    found = queries.runs(store, gpu_model=gpu, branch=branch, dirty=False, limit=runs_back or 200)
    ordered = in_commit_order(store, found)
    ends = (ordered[:3], ordered[-3:])
    moved: dict[str, list[float]] = {}
    for part in ends:
        table = queries.result_table(store, part, cases=case_keys)
        for index, key in enumerate(table.case_keys):
            times = table.median_s[table.case == index]
            known = times[np.isfinite(times)]
            moved.setdefault(key, []).append(float(np.median(known)) if known.size else np.nan)
    change = {
        key: abs(np.log(times[1] / times[0])) if len(times) == 2 else np.nan
        for key, times in moved.items()
    }
    return tuple(
        sorted(case_keys, key=lambda key: -np.nan_to_num(change.get(key, np.nan), nan=-1.0))
    )


@cached
def trends(
    store: Store, gpu: str, branch: str | None, case_keys: tuple[str, ...], length: int
) -> dict[str, list[float]]:
    """Return the bandwidths of cases in the last runs, in commit order and GB/s, without gaps."""
    found = queries.runs(store, gpu_model=gpu, branch=branch, dirty=False, limit=length)
    table = queries.result_table(store, in_commit_order(store, found), cases=case_keys)
    return {
        key: [float(v) for v in table.bandwidth[table.case == i] / 1e9 if np.isfinite(v)]
        for i, key in enumerate(table.case_keys)
    }


@cached
def commits(store: Store, shas: tuple[str, ...]) -> dict[str, Commit]:
    """Return what is known of commits, by id."""
    return queries.commits(store, shas)


@cached
def result(store: Store, run_id: str, case_key: str) -> Result | None:
    """Return one result of a run with its measurements, None where the run lacks the case."""
    found = queries.results(store, queries.find_run(store, run_id), cases=[case_key])
    return found[0] if found else None


@cached
def latest(store: Store, run_id: str) -> pd.DataFrame:
    """Return the results of a run, one row a case, without measurements; numbers in base units."""
    found = queries.results(store, queries.find_run(store, run_id), measurements=False)
    return pd.DataFrame([_row(result) for result in found], columns=list(_ROW))


# The columns of a result, whether or not there is one.
_ROW = (
    *("label", "case_key", "kernel", "implementation", "dtype", "shape", "status"),
    *("median_s", "count", "bytes_moved", "flop", "bandwidth", "copy_fraction"),
    *("copy_bytes_per_s", "copy_source", "theoretical_bytes_per_s", "theoretical_flop_per_s"),
    *("two_read_bytes_per_s", "two_read_fraction", "of_sum", "floor_s", "empty_s"),
    "launch_bound",
    *("checked", "passed", "worst_error", "bound", "worst_ratio", "detail", "compile_s"),
    "warnings",
)


def _row(result: Result) -> dict[str, str | float | bool | None]:
    case, peaks, check = result.case, result.peaks, result.correctness
    two_read = yardsticks.sum_fraction(result)
    return {
        "label": label(case),
        "case_key": case.fingerprint,
        "kernel": case.kernel,
        "implementation": case.implementation,
        "dtype": case.dtype,
        "shape": shape(case),
        "status": result.status.value,
        "median_s": result.summary.median_s if result.summary else np.nan,
        "count": result.summary.count if result.summary else 0,
        "bytes_moved": _number(result.bytes_moved),
        "flop": _number(result.flop),
        "bandwidth": _number(result.bandwidth),
        "copy_fraction": _number(result.copy_fraction),
        "copy_bytes_per_s": _number(peaks.copy_bytes_per_s),
        "copy_source": peaks.copy_source or "same-size copy in this run",
        "theoretical_bytes_per_s": _number(peaks.theoretical_bytes_per_s),
        "theoretical_flop_per_s": _number(peaks.theoretical_flop_per_s),
        "two_read_bytes_per_s": _number(peaks.two_read_bytes_per_s),
        "two_read_fraction": _number(two_read),
        # Of those to whom it is told: what moves three arrays, and what is small.
        "of_sum": _number(two_read if yardsticks.fits_sum(result) else None),
        "floor_s": _number(peaks.floor_s),
        "empty_s": _number(yardsticks.floor_beside(result)),
        "launch_bound": yardsticks.launch_bound(result),
        "checked": check.checked,
        "passed": bool(check.passed),
        "worst_error": _number(check.worst_error),
        "bound": _number(check.bound),
        "worst_ratio": _number(check.worst_ratio),
        "detail": check.detail or result.reasons.get("correctness") or "",
        "compile_s": _number(result.first_call.compile_s),
        "warnings": "; ".join(map(_told, result.warnings)),
    }


def _told(warning: Warn) -> str:
    """Return a warning in words, the one that a launch-bound result has with that word."""
    bound = f"{yardsticks.LAUNCH_BOUND}: " if warning.code == yardsticks.NEAR_FLOOR else ""
    return f"{bound}{warning.message}"


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def shape(case: Case) -> str:
    """Return what a case measures apart from kernel, implementation and dtype."""
    parameters = [f"{name}={value}" for name, value in sorted(case.parameters.items())]
    odd = [] if case.alignment == "aligned" else [case.alignment]
    version = [] if case.version == 1 else [f"v{case.version}"]
    sizes = "x".join(map(str, case.shape))
    return " ".join([f"[{sizes}]", *odd, *parameters, case.cache, *version])


def named(runs: Iterable[RunInfo]) -> dict[str, RunInfo]:
    """Return runs by a short name: commit and start, and the run's id where two share that."""
    found: dict[str, RunInfo] = {}
    for run in runs:
        name = f"{short(run.sha)} {day(run.started)}"
        changed = " changed" if run.checkout.dirty else ""
        name += changed + (f" {other}" if (other := other_than_suite(run)) else "")
        found[f"{name} {run.run_id[:12]}" if name in found else name] = run
    return found


def other_than_suite(run: RunInfo) -> str:
    """Return in a word what a run was for, nothing for one of the suite."""
    note = occasion.purpose(run)
    return occasion.in_a_word(note) if note else ""


def label(case: Case) -> str:
    """Return the name of a case, with its version where it is not the first."""
    return case.label if case.version == 1 else f"{case.label} v{case.version}"


def day(started: float) -> str:
    """Return a time in seconds since 1970 as `2026-09-01 09:20` in UTC."""
    return datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M")
