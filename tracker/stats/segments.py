"""Cutting a series into stretches of one level.

Candidates come from intervals of every length (seeded binary segmentation: Kovacs, Buehlmann, Li
and Munk, Biometrika 110, 2023), so that a short dip in a long history counts as much as a step.
They are then weighed together, with the noise and the autocorrelation that they leave, and the
weakest are dropped until every one is significant.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt

import numpy as np

from tracker.stats.level import Array, certain_correlation, inflation
from tracker.stats.student import normal_tail

# The score from which a change point is significant: 0.7 % of series without change show one.
BAR = 3.5
# Fewer runs than this are no level.
SHORTEST = 3
CANDIDATE = 3.0
SPIKE = 4.0
_TINY = 1e-300
# The variance of one stretch counts beside this many runs at the variance of all.
_POOLED_RUNS = 10.0


def without_spikes(series: Array) -> Array:
    """Return the series with runs far from the median of their seven neighbours put at it.

    Three bad runs in a row stay, and so does the first run of a new level.
    """
    reach = min(3, series.size - 1)
    padded = np.concatenate([series[reach:0:-1], series, series[-2 : -reach - 2 : -1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    middle = np.partition(windows, reach, axis=1)[:, reach]
    far = np.abs(series - middle) > SPIKE * _sigma_of_steps(series)
    return np.where(far, middle, series)


def cut(series: Array) -> tuple[list[int], list[float]]:
    """Return where new levels begin and the score of each, all significant together."""
    cuts = _settle(series, _candidates(series))
    while cuts:
        scores = _scores(series, cuts)
        padded = [np.inf, *scores, np.inf]
        weak = {
            c
            for i, c in enumerate(cuts)
            if scores[i] < BAR and scores[i] <= min(padded[i], padded[i + 2])
        }
        if not weak:
            return [_place(series, *ends) for ends in _neighbours(cuts, series.size)], scores
        cuts = _settle(series, [c for c in cuts if c not in weak])
    return [], []


def placed_again(raw: Array, quiet: Array, cuts: list[int]) -> list[int]:
    """Return the cuts of a series without spikes, placed by what was no spike of either level.

    `quiet` is `without_spikes(raw)`. Beside a step it takes a far run for a spike now and then, and
    there every run counts.
    """
    if not cuts or np.array_equal(raw, quiet):
        return cuts
    sigma = float((quiet - levels(quiet, cuts)).std())
    found = [0]
    for at, end in zip(cuts, [*cuts[1:], raw.size], strict=True):
        # From the place just found: two neighbours that move must not cross.
        begin = found[-1]
        if min(at - begin, end - at) < SHORTEST:
            found.append(at)
            continue
        part = raw[begin:end]
        means = (quiet[begin:at].mean(), quiet[at:end].mean())
        near = np.min([np.abs(part - mean) for mean in means], axis=0) <= SPIKE * sigma
        found.append(begin + _place(np.where(near, part, quiet[begin:end]), 0, part.size))
    return found[1:]


def levels(series: Array, cuts: Sequence[int]) -> Array:
    """Return the mean of its stretch at each value."""
    result = np.empty_like(series)
    for a, b in pairwise([0, *cuts, series.size]):
        result[a:b] = series[a:b].mean()
    return result


def chance(score: float) -> float:
    """Return the chance that a series without change shows a score this high anywhere.

    Found by simulation on Gaussian series of 30 to 300 runs: at most as many places as this are
    independent of one another once the fee for short stretches is paid.
    """
    return min(1.0, 15 * 2 * normal_tail(score))


def _sigma_of_steps(series: Array) -> float:
    """Return the noise seen from run to run, which changes of level hardly touch."""
    # Four times as fast as `np.median`, whose result it is.
    steps = np.sort(np.abs(series[1:] - series[:-1]))
    middle = float(steps[(steps.size - 1) // 2] + steps[steps.size // 2]) / 2
    sigma = middle * 1.4826 / sqrt(2)
    return max(sigma, _half_tick(series))


def _half_tick(series: Array) -> float:
    ordered = np.sort(series)
    steps = ordered[1:] - ordered[:-1]
    steps = steps[steps > abs(series[0]) * 1e-12]
    return float(steps.min()) / 2 if steps.size else 0.0


def _candidates(series: Array) -> list[int]:
    """Return places where a step might be, strongest first chosen, none closer than `SHORTEST`."""
    sigma = _sigma_of_steps(series)
    if sigma == 0:
        return []
    total = np.concatenate([[0.0], np.cumsum(series - series[0])])
    starts, ends, places, scores = [], [], [], []
    for begin, inside in seeds(series.size):
        length = inside[-1] + SHORTEST
        left = total[begin + inside] - total[begin]
        right = total[begin + length] - total[begin + inside]
        gap = np.abs(left / inside - right / (length - inside))
        score = gap * np.sqrt(inside * (length - inside) / (length * sigma**2))
        best = np.argmax(score, axis=1)
        found = score[np.arange(best.size), best]
        good = found >= CANDIDATE
        starts.append(begin[good, 0])
        ends.append(begin[good, 0] + length)
        places.append(begin[good, 0] + inside[best[good]])
        scores.append(found[good])
    return _strongest(*(np.concatenate(x) for x in (starts, ends, places, scores)))


def _strongest(starts: Array, ends: Array, places: Array, scores: Array) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    starts, ends, places = starts[order], ends[order], places[order]
    alive = np.ones(order.size, dtype=bool)
    chosen: list[int] = []
    while alive.any():
        at = int(places[np.argmax(alive)])
        chosen.append(at)
        alive &= (ends <= at) | (starts >= at)
    return sorted(chosen)


@lru_cache(maxsize=64)
def seeds(runs: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return, for each length, interval starts (rows) and the splits inside them."""
    found = []
    length = float(2 * SHORTEST)
    while True:
        size = min(round(length), runs)
        starts = np.arange(0, runs - size + 1, max(1, size // 4))
        if starts[-1] != runs - size:
            starts = np.append(starts, runs - size)
        found.append((starts[:, None], np.arange(SHORTEST, size - SHORTEST + 1)))
        if size == runs:
            return tuple(found)
        length *= 1.6


def _place(series: Array, begin: int, end: int) -> int:
    """Return the most probable first value of the new level between two neighbouring changes.

    The posterior of the place, with both levels and the noise integrated out, plus 0.8 times that
    of the five places around: the place of a small step is seldom certain, and near it is better
    than far off.
    """
    values = series[begin:end] - series[begin]
    n = values.size
    left = np.arange(SHORTEST, n - SHORTEST + 1)
    total = np.cumsum(values)
    before, after = total[left - 1], total[-1] - total[left - 1]
    squares = values @ values - before**2 / left - after**2 / (n - left)
    squares = np.maximum(squares, _TINY)
    logs = -(n - 2) / 2 * np.log(squares) - 0.5 * np.log(left * (n - left))
    chances = np.exp(logs - logs.max())
    around = np.convolve(np.pad(chances, 2), np.ones(5), mode="valid")
    return begin + int(left[np.argmax(chances + 0.8 * around)])


def _neighbours(cuts: list[int], runs: int) -> list[tuple[int, int]]:
    """Return for each cut the one before it (or 0) and the one after it (or the end)."""
    return list(zip([0, *cuts[:-1]], [*cuts[1:], runs], strict=True))


def _settle(series: Array, cuts: list[int]) -> list[int]:
    """Return the cuts, each moved to the best place between its neighbours; those too close go."""
    total = np.concatenate([[0.0], np.cumsum(series - series[0])])
    cuts = list(cuts)
    i = 0
    while i < len(cuts):
        begin = cuts[i - 1] if i else 0
        end = cuts[i + 1] if i + 1 < len(cuts) else series.size
        inside = np.arange(SHORTEST, end - begin - SHORTEST + 1)
        if inside.size == 0:
            del cuts[i]
            i = max(0, i - 1)
            continue
        length = end - begin
        left = (total[begin + inside] - total[begin]) / inside
        right = (total[end] - total[begin + inside]) / (length - inside)
        gain = np.abs(left - right) * np.sqrt(inside * (length - inside))
        cuts[i] = begin + int(inside[np.argmax(gain)])
        i += 1
    return cuts


def _scores(series: Array, cuts: list[int]) -> list[float]:
    """Return the score of each cut between its neighbours, autocorrelation considered."""
    edges = np.array([0, *cuts, series.size])
    sizes = np.diff(edges)
    total = np.add.reduceat(series, edges[:-1])
    means = total / sizes
    residuals = series - np.repeat(means, sizes)
    degrees = series.size - sizes.size
    pooled = float(residuals @ residuals) / max(degrees, 1)
    own = np.add.reduceat(residuals**2, edges[:-1])
    variance = (_POOLED_RUNS * pooled + own) / (_POOLED_RUNS + sizes - 1)
    correlation = certain_correlation(residuals[None, :], sizes.size)
    stretch = np.array([float(inflation(correlation, int(s))[0]) for s in sizes]) / sizes
    error = np.sqrt(variance[1:] * stretch[1:] + variance[:-1] * stretch[:-1]) + _TINY
    with np.errstate(over="ignore"):  # levels without any noise differ infinitely
        t = np.abs(np.diff(means)) / error
    # Late, as in `tracker.stats.shift`.
    from scipy.special import ndtri, stdtr

    scores = -ndtri(np.maximum(stdtr(max(degrees, 1), -t), _TINY))
    shorter = np.minimum(sizes[1:], sizes[:-1])
    # There are more places for short stretches than for long ones.
    fee = np.sqrt(2 * np.log(np.e * series.size / (2 * shorter))) - sqrt(2)
    return [float(s) for s in scores - fee]
