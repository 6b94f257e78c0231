"""Measuring a suspicious run again before anyone is alarmed, with as few extra runs as can be.

A sequential test of "two standard deviations worse" against "no change". Most unchanged runs are
dismissed after one or two repeats; a real loss is confirmed by three to ten. Repeats are fresh runs
of the same commit; noise that a whole session shares is not averaged away by them.

Source: Wald, Sequential Analysis (1947), with the bounds set by dynamic programming for the cost of
repeats under no change, and checked by `bandwatch evaluate --synthetic`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, sqrt

import numpy as np

from tracker.stats.shift import normal_score

Remeasure = Callable[[int], Sequence[float]]

# Scores that make a run suspicious enough to measure again; a gain can wait.
LOSS_TRIGGER = 1.65
GAIN_TRIGGER = 3.5
MOST_REPEATS = 20
_CONFIRM = 4.2
_DISMISS = 1.6
# No single run says more than this many standard deviations, the suspicious one itself still less:
# one spike and one more in its repeats confirm nothing.
_FIRST_CAP, _CAP = 3.0, 4.0
_FEWEST = 2


class Outcome(StrEnum):
    """What measuring again showed."""

    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Repeats:
    """The repeats of one run, their score together with it, and the outcome."""

    outcome: Outcome
    values: tuple[float, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Standard:
    """What a run is held against: expected value, standard deviation and how well both are known.

    `level_share` is the variance of the expected value in units of one run's variance.
    """

    value: float
    sigma: float
    level_share: float
    degrees: float

    def distance(self, run: float, sign: int) -> float:
        """Return how many standard deviations a run lies towards `sign`."""
        return sign * (run - self.value) / self.sigma

    def score(self, mean: float, count: int) -> float:
        """Return the normal score of the mean distance of `count` runs."""
        t = mean / sqrt(1 / count + self.level_share)
        return float(normal_score(np.array(t), np.array(self.degrees)))


def repeat(first: float, sign: int, standard: Standard, remeasure: Remeasure) -> Repeats:
    """Measure again until a move towards `sign` is confirmed, dismissed or the budget spent."""
    distances = [min(standard.distance(first, sign), _FIRST_CAP)]
    values: list[float] = []
    while len(values) < MOST_REPEATS:
        fresh = [float(v) for v in remeasure(1) if isfinite(v)]
        if not fresh:
            break
        values += fresh
        distances += [float(np.clip(standard.distance(v, sign), -_CAP, _CAP)) for v in fresh]
        total, count = sum(distances), len(distances)
        score = standard.score(total / count, count)
        if score >= _CONFIRM and len(values) >= _FEWEST:
            return Repeats(Outcome.CONFIRMED, tuple(values), score)
        # The logarithm of how much better two standard deviations explain the runs than none.
        if 2 * total - 2 * count < _DISMISS:
            return Repeats(Outcome.DISMISSED, tuple(values), score)
    count = len(distances)
    return Repeats(Outcome.OPEN, tuple(values), standard.score(sum(distances) / count, count))


def confirm(sign: int, standard: Standard, remeasure: Remeasure, count: int = 4) -> Repeats:
    """Measure `count` times again to see whether a step that a window shows is in fresh runs."""
    values = tuple(float(v) for v in remeasure(count) if isfinite(v))
    if not values:
        return Repeats(Outcome.OPEN, (), 0.0)
    distances = np.clip([standard.distance(v, sign) for v in values], -_CAP, _CAP)
    score = standard.score(float(distances.mean()), len(values))
    outcome = Outcome.CONFIRMED if score >= LOSS_TRIGGER else Outcome.DISMISSED
    return Repeats(outcome, values, score)
