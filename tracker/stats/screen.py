"""Which of many series may have changed at all: exact, for all of them in one pass.

A series that is let go here has no change point by `change_point.change_points`: none of its
candidates is strong enough to begin with, or its values lie closer together than the smallest
change that matters. What remains is searched one by one, which takes about a millisecond each.
"""

from math import sqrt

import numpy as np
import numpy.typing as npt

from tracker.stats.level import Array, Mask
from tracker.stats.segments import CANDIDATE, SHORTEST, SPIKE, seeds

# Sums in another order may differ in their last digits; nothing may be let go for that.
_MARGIN = 1 - 1e-9


def may_change(rows: Array, minimal_effect: float = 1e-4) -> Mask:
    """Return which rows (S, n) of S finite, positive series of n runs may hold a change point.

    `minimal_effect` is the smallest relative change that matters.
    """
    if rows.shape[1] < 2 * SHORTEST:
        return np.zeros(rows.shape[0], dtype=np.bool_)
    quiet = _without_spikes(rows)
    sigma = _sigma_of_steps(quiet)
    lowest = quiet.min(axis=1)
    wide = quiet.max(axis=1) - lowest >= _MARGIN * minimal_effect * np.abs(lowest)
    found: Mask = wide & (sigma > 0)
    found[found] = _strongest(quiet[found], sigma[found]) >= _MARGIN * CANDIDATE
    return found


def _without_spikes(rows: Array) -> Array:
    """Return `segments.without_spikes` of each row."""
    reach = min(3, rows.shape[1] - 1)
    padded = np.pad(rows, ((0, 0), (reach, reach)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=1)
    middle = np.median(windows, axis=2)
    far = np.abs(rows - middle) > SPIKE * _sigma_of_steps(rows)[:, None]
    quiet: Array = np.where(far, middle, rows)
    return quiet


def _sigma_of_steps(rows: Array) -> Array:
    steps = np.median(np.abs(np.diff(rows, axis=1)), axis=1) * 1.4826 / sqrt(2)
    gaps = np.diff(np.sort(rows, axis=1), axis=1)
    gaps[gaps <= np.abs(rows[:, :1]) * 1e-12] = np.inf
    tick = gaps.min(axis=1) / 2
    sigma: Array = np.maximum(steps, np.where(np.isinf(tick), 0.0, tick))
    return sigma


def _strongest(rows: Array, sigma: Array) -> Array:
    """Return the highest score that any split of any seeded interval has in each row."""
    total = np.zeros((rows.shape[0], rows.shape[1] + 1))
    np.cumsum(rows - rows[:, :1], axis=1, out=total[:, 1:])
    best = np.zeros(rows.shape[0])
    for begin, inside in seeds(rows.shape[1]):
        score = _scores(total, begin[:, 0], inside)
        best = np.maximum(best, score.max(axis=(1, 2), initial=0.0))
    strongest: Array = best / sigma
    return strongest


def _scores(total: Array, begin: npt.NDArray[np.int64], inside: npt.NDArray[np.int64]) -> Array:
    """Return for each row, interval and split the difference of means in units of one run."""
    length = int(inside[-1]) + SHORTEST
    at = begin[:, None] + inside[None, :]
    left = total[:, at] - total[:, begin][:, :, None]
    right = total[:, begin + length][:, :, None] - total[:, at]
    gap = np.abs(left / inside - right / (length - inside))
    score: Array = gap * np.sqrt(inside * (length - inside) / length)
    return score
