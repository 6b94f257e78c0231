"""The history rule: where the level of a series changed, seen from the whole of it.

A steady drift is told as a drift, not as stairs; one or two bad runs are no step, nor at the end.
How the places are found stands in `segments`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log

import numpy as np

from tracker.stats.level import Array, fit
from tracker.stats.segments import (
    BAR,
    SHORTEST,
    chance,
    cut,
    levels,
    placed_again,
    without_spikes,
)

# A slope is told from this score on; below, it is left to the steps.
_SURE_DRIFT = 4.0
# Below this t statistic the stretches between steps are level.
_LEVEL_STRETCH = 1.3
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """One change of level.

    `index` is the first value of the new level, in the sequence as given; `before` and `after` are
    the mean levels, `effect` their relative change; `p_value` is the chance of one this strong
    anywhere in a series of this length without change.
    """

    index: int
    before: float
    after: float
    effect: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A steady change: relative, over the whole series, with the score of its slope."""

    effect: float
    score: float


@dataclass(frozen=True, slots=True)
class History:
    """What a whole series shows: its changes, or a drift, and the places of values left out."""

    changes: tuple[ChangePoint, ...]
    drift: Drift | None
    skipped: tuple[int, ...]
    noise: float


@dataclass(frozen=True, slots=True)
class Revision:
    """What became of earlier change points when runs were added: kept or retracted."""

    added: tuple[ChangePoint, ...]
    kept: tuple[ChangePoint, ...]
    retracted: tuple[ChangePoint, ...]


def change_points(values: Sequence[float | None]) -> list[ChangePoint]:
    """Return the change points of a series; what is no value is skipped with a warning."""
    found = history(values)
    if found.skipped:
        warnings.warn(
            f"{len(found.skipped)} of {len(values)} values are missing or not finite and were "
            f"skipped, the first at {found.skipped[0]}",
            RuntimeWarning,
            stacklevel=2,
        )
    return list(found.changes)


def history(values: Sequence[float | None], minimal_effect: float = 1e-4) -> History:
    """Return changes, drift and noise of a series; indices count all values, also those left out.

    Changes below `minimal_effect`, a share of the level, are left out: no timer resolves them.
    """
    raw = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    places = np.flatnonzero(np.isfinite(raw))
    skipped = tuple(int(i) for i in np.flatnonzero(~np.isfinite(raw)))
    if places.size < 2 * SHORTEST:
        return History((), None, skipped, 0.0)
    found = _told(*_cut(raw[places]), minimal_effect)
    changes = tuple(replace(change, index=int(places[change.index])) for change in found.changes)
    return replace(found, changes=changes, skipped=skipped)


def changes_in(values: Array, minimal_effect: float = 1e-4) -> tuple[ChangePoint, ...]:
    """Return the changes that `history` finds in finite values; faster where there are none."""
    if values.size < 2 * SHORTEST:
        return ()
    series, cuts, scores = _cut(values)
    return _told(series, cuts, scores, minimal_effect).changes if cuts else ()


def _cut(raw: Array) -> tuple[Array, list[int], list[float]]:
    """Return the values without spikes, where new levels begin, and the score of each."""
    series = without_spikes(raw)
    cuts, scores = cut(series)
    return series, placed_again(raw, series, cuts), scores


def _told(series: Array, cuts: list[int], scores: list[float], minimal_effect: float) -> History:
    residuals = series - levels(series, cuts)
    noise = float(residuals.std()) / (abs(float(series.mean())) + _TINY)
    drift = _drift(series, residuals, cuts)
    if drift is not None:
        return History((), drift, (), noise)
    means = [float(series[a:b].mean()) for a, b in pairwise([0, *cuts, series.size])]
    changes = (
        ChangePoint(at, a, b, b / a - 1 if a else inf, chance(score))
        for at, score, (a, b) in zip(cuts, scores, pairwise(means), strict=True)
    )
    real = tuple(c for c in changes if abs(c.effect) >= minimal_effect)
    return History(real, None, (), noise)


def _drift(series: Array, residuals: Array, cuts: list[int]) -> Drift | None:
    """Return the drift of a series when a straight line explains it better than its steps do.

    Both pay for their parameters, a change point what it must be worth; and the stretches between
    the steps must slope the same way, which those of real steps do not.
    """
    n = series.size
    level = fit(series[None, :])
    score = float(level.drift_score[0])
    if abs(score) < _SURE_DRIFT:
        return None
    line = np.polynomial.Polynomial.fit(np.arange(n), series, 1)
    left = series - line(np.arange(n))
    cost = BAR**2
    steps = n * log(float(residuals @ residuals) + _TINY) + cost * len(cuts)
    if n * log(float(left @ left) + _TINY) + cost > steps:
        return None
    if cuts and np.sign(score) * _slope_within(residuals, cuts) < _LEVEL_STRETCH:
        return None
    return Drift(float(line(n - 1) / line(0) - 1), score)


def _slope_within(residuals: Array, cuts: list[int]) -> float:
    """Return the t statistic of one slope common to all stretches."""
    edges = np.array([0, *cuts, residuals.size])
    sizes = np.diff(edges)
    time = np.arange(residuals.size) - np.repeat((edges[1:] + edges[:-1] - 1) / 2, sizes)
    spread = float(time @ time)
    slope = float(residuals @ time) / spread
    left = residuals - slope * time
    return slope / (
        float(np.sqrt(left @ left / max(1, left.size - sizes.size - 1) / spread)) + _TINY
    )


def revise(before: Sequence[ChangePoint], after: Sequence[ChangePoint], slack: int = 5) -> Revision:
    """Return which change points are new, kept (moved by `slack` values at most) and retracted."""
    left = list(after)
    kept, retracted = [], []
    for old in before:
        near = [new for new in left if abs(new.index - old.index) <= slack]
        if near:
            best = min(near, key=lambda new: abs(new.index - old.index))
            left.remove(best)
            kept.append(best)
        else:
            retracted.append(old)
    return Revision(tuple(left), tuple(kept), tuple(retracted))
