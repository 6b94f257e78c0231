"""How far unchanged runs stray: the tails of the noise, from all earlier runs of a whole suite.

Student's t knows tails as heavy as its degrees of freedom allow. A machine may have heavier ones,
and the runs of one case are too few to show it; those of all cases together are not.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracker.stats.against import Newest, Standing, alike
from tracker.stats.noise import Noise
from tracker.stats.summary import LogMedian

Array = npt.NDArray[np.float64]
# The farthest runs on a side show how its tail falls: this share of all, never fewer than eight.
# Where these are more than a tenth of all, they are no tail, and runs about as far out count.
TAIL = 0.02
FEWEST = 8
MOST = 0.1
# Runs of a series without a level: so many show which of them strays.
YOUNGEST = 3


class Tails:
    """What the earlier runs of a suite's cases say of how far a run strays from its level."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        found = [
            distances(standing.newest, standing.prior)
            for standing in standings
            if standing.newest is not None and standing.prior is not None
        ]
        found += [
            young_distances(standing.young, standing.comparison.noise.sigma)
            for standing in standings
            if len(standing.young) >= YOUNGEST
        ]
        self._far = np.sort(np.concatenate(found)) if found else np.empty(0)

    def least_chance(self, standing: Standing) -> float:
        """Return how likely, at least, an unchanged case stands so, by what strayed before.

        Each run of head is one that strayed; where head is held against base alone, base may be.
        """
        chance = self.beyond(standing.distance) ** standing.comparison.head_runs
        if not standing.by_level:
            chance += self.beyond(-standing.distance) ** standing.comparison.base_runs
        return min(1.0, chance)

    def beyond(self, distance: float) -> float:
        """Return twice the share of runs as far out, on the side of `distance`; 0 without runs.

        Among the farthest runs it is what a power of the distance says, fitted to them and taken
        flatter by half its standard error: tails that fall as a power are the heaviest that noise
        is known to have.

        Source: Hill, A simple general approach to inference about the tail of a distribution,
        Annals of Statistics 3 (1975).
        """
        side = self._far[::-1] if distance > 0 else -self._far
        size = abs(distance)
        many = max(FEWEST, int(np.ceil(TAIL * side.size)))
        if side.size == 0:
            return 0.0
        if many > MOST * side.size or side[many] <= 0:
            return min(1.0, 2 * alike(self._far, distance) / side.size)
        edge = float(side[many])
        if size <= edge:
            return min(1.0, 2 * int(np.sum(side >= size)) / side.size)
        slope = (1 - 0.5 / np.sqrt(many)) / float(np.log(side[:many] / edge).mean() + 1e-12)
        return float(2 * many / side.size * np.exp(-slope * np.log(size / edge)))


def distances(newest: Newest, prior: Noise) -> Array:
    """Return how far each earlier run is from the level of the others, in what they expect of it.

    The unit is the standard deviation that the others and the prior let expect of one run more;
    runs that stray are no part of any level.
    """
    level = np.array([run.value for run in newest.runs])
    n, centre = level.size, float(level.mean())
    if n < 2:
        return np.empty(0)
    off = level - centre
    squares = float(off @ off)
    prior_squares = prior.degrees * prior.sigma**2
    left = np.maximum(squares - off**2 * n / (n - 1), 0.0)
    variance = (prior_squares + left) / (prior.degrees + n - 2) * (1 + 1 / (n - 1))
    usual = off * n / (n - 1) / np.sqrt(variance)
    apart = (prior_squares + squares) / (prior.degrees + n - 1) * (1 + 1 / n)
    return np.concatenate([usual, (newest.strays - centre) / np.sqrt(apart)])


def young_distances(runs: Sequence[LogMedian], sigma: float) -> Array:
    """Return how far each run is from the median of the others, in the same unit."""
    values = np.array([run.value for run in runs])
    n = values.size
    others = np.broadcast_to(values, (n, n))[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    found: Array = (values - np.median(others, axis=1)) / (sigma * np.sqrt(1 + 1 / (n - 1)))
    return found
