"""The level and the noise of a series, robust, for many series at once.

Shapes: rows is (S, n), S series of n runs each, oldest first; every result has one entry per row.
A series may hold spikes, heavy tails, autocorrelation, a slow drift, a noise that grows and values
rounded to a timer's tick; each is estimated and makes later decisions more careful, by as much as
it is certain.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# A run further than this many standard deviations from the level is a spike: it moves nothing.
SPIKE = 4.0
_TINY = 1e-300
# Values that differ by less than this share are equal but for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Level:
    """Robust centre and variance of each row, and what is left of it.

    `counts` (S, n) is false for spikes, whose `residuals` are 0; `tick` is half the step of rounded
    values. `slope` is the drift a run, `drift_score` its t statistic, autocorrelation considered.
    """

    centre: Array
    variance: Array
    counts: Mask
    residuals: Array
    tick: Array
    slope: Array
    drift_score: Array

    @property
    def runs(self) -> int:
        """Number of runs behind each level."""
        return int(self.residuals.shape[1])


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier level taught about the noise of a series; the variance is a run's.

    Numbers of one series, or arrays with an entry for each row.
    """

    variance: float | Array
    degrees: float | Array
    correlation: float | Array


@dataclass(frozen=True, slots=True)
class Expectation:
    """What later runs should look like if nothing changed.

    `weight` is 0 where a drift is not certain and 1 where it is, and `slope` has it in it.
    `correlation` is that of neighbouring runs, 0 where it is not certain; `level_share` is the
    variance of the centre in units of the variance of one run.
    """

    centre: Array
    slope: Array
    weight: Array
    variance: Array
    degrees: Array
    correlation: Array
    level_share: Array
    runs: int

    def at(self, lag: float) -> Array:
        """Return the expected value `lag` runs after the middle of the level."""
        return self.centre + self.slope * lag

    def share_at(self, lag: float) -> Array:
        """Return the variance of `at(lag)`, in units of the variance of one run."""
        if not self.weight.any():
            return self.level_share
        stretch = inflation(self.correlation, self.runs)
        return self.level_share + stretch * self.weight * lag**2 / _spread_of_time(self.runs)


def fit(rows: Array) -> Level:
    """Return the robust level of each row of at least two runs.

    Starts from the median and the middle 60 % and repeatedly drops what is `SPIKE` standard
    deviations away, so that a clean Gaussian row keeps all its runs and all its precision.
    """
    ordered = np.sort(rows, axis=1)
    n = rows.shape[1]
    centre = ordered[:, n // 2]
    tick = _tick(ordered)
    edge = int(0.2 * (n - 1))
    # The middle 60 % of a Gaussian is 1.683 standard deviations wide.
    sigma = np.maximum((ordered[:, n - 1 - edge] - ordered[:, edge]) / 1.683, tick)
    for _ in range(4):
        reach = SPIKE * sigma + np.abs(centre) * _ROUNDING
        counts = np.abs(rows - centre[:, None]) <= reach[:, None]
        kept = counts.sum(axis=1)
        centre = (rows * counts).sum(axis=1) / kept
        residuals = (rows - centre[:, None]) * counts
        sigma = np.sqrt((residuals**2).sum(axis=1) / np.maximum(kept - 1, 1))
        sigma = np.maximum(sigma, tick)
    slope, score = _drift(residuals, counts)
    return Level(centre, sigma**2, counts, residuals, tick, slope, score)


def expect(
    level: Level, sign: int, known: Known | None = None, *, restless: bool = True
) -> Expectation:
    """Return what to expect when a move towards `sign` is feared (+1 up, -1 down).

    A drift that way is followed, so that it is not taken for a step; a drift the other way is not,
    so that it cannot excuse one. `known` adds what was learned before this level began. `restless`
    takes the noise of the last dozen runs where it is larger.
    """
    # Wider than significance at 5 %: a missed drift costs false alarms, a false one sensitivity.
    weight = np.clip((sign * level.drift_score - 1.2) / (1.7 - 1.2), 0, 1)
    kept = level.counts.sum(axis=1)
    residuals, variance, degrees = level.residuals, level.variance, kept - 1.0
    slope = weight * level.slope
    if weight.any():
        residuals = _without(slope, residuals, level.counts)
        degrees = np.maximum(degrees - weight, 1)
        variance = np.maximum((residuals**2).sum(axis=1) / degrees, level.tick**2)
    correlation = certain_correlation(residuals)
    if restless:
        variance, degrees = _lately(residuals, variance, degrees)
    if known is not None:
        total = degrees + known.degrees
        variance = (degrees * variance + known.degrees * known.variance) / total
        degrees, correlation = total, np.maximum(correlation, known.correlation)
    share = inflation(correlation, level.runs) / kept
    return Expectation(
        level.centre, slope, weight, variance, degrees, correlation, share, level.runs
    )


def certain_correlation(residuals: Array, levels: int = 1) -> Array:
    """Return the correlation of neighbouring runs as far as it is certain, from 0 to 0.95.

    Below 1.8 standard errors it counts as none, above 2.7 it is taken with 0.7 errors on top; the
    small-sample bias (Marriott and Pope, 1954) of residuals from so many fitted levels is removed.
    """
    n = residuals.shape[1]
    power = (residuals**2).sum(axis=1) + _TINY
    raw = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / power * n / (n - 1)
    found = raw + (1 + 3 * raw) * levels / n
    error = n**-0.5
    weight = np.clip((found - 1.8 * error) / (0.9 * error), 0, 1)
    certain: Array = np.clip(weight * (found + 0.7 * error), 0, 0.95)
    return certain


def inflation(correlation: Array, runs: int) -> Array:
    """Return how often the variance of a mean of `runs` holds that without autocorrelation.

    The autocorrelation is of first order.
    """
    if not correlation.any():
        return np.ones_like(correlation)
    gap = 1 - correlation
    return (1 + correlation) / gap - 2 * correlation * (1 - correlation**runs) / (runs * gap**2)


def _tick(ordered: Array) -> Array:
    """Return half the smallest step between sorted values of each row, 0 where all are equal."""
    steps = np.diff(ordered, axis=1)
    steps[steps <= np.abs(ordered[:, :1]) * _ROUNDING] = np.inf
    tick: Array = steps.min(axis=1) / 2
    tick[np.isinf(tick)] = 0.0
    return tick


def _drift(residuals: Array, counts: Mask) -> tuple[Array, Array]:
    """Return the slope per run of each row and its t statistic."""
    n = residuals.shape[1]
    slope = residuals @ _times(n) / _spread_of_time(n)
    left = _without(slope, residuals, counts)
    variance = (left**2).sum(axis=1) / np.maximum(counts.sum(axis=1) - 2, 1)
    stretch = inflation(certain_correlation(left), n)
    return slope, slope / (np.sqrt(variance * stretch / _spread_of_time(n)) + _TINY)


def _without(slope: Array, residuals: Array, counts: Mask) -> Array:
    """Return residuals with a drift taken out; spikes stay 0."""
    return (residuals - slope[:, None] * _times(residuals.shape[1])) * counts


def _lately(residuals: Array, variance: Array, degrees: Array) -> tuple[Array, Array]:
    """Return variance and degrees, moved to the last dozen runs' where these are noisier."""
    last = min(12, residuals.shape[1] // 2)
    recent = (residuals[:, -last:] ** 2).sum(axis=1) / last
    weight = np.clip((recent / (variance + _TINY) - 1.3) / (1.8 - 1.3), 0, 1)
    if not weight.any():
        return variance, degrees
    keep = 1 - weight
    return variance * keep + recent * weight, degrees * keep + last * weight


def _times(runs: int) -> Array:
    return np.arange(runs, dtype=np.float64) - (runs - 1) / 2


def _spread_of_time(runs: int) -> float:
    """Return the sum of squared distances of 0, 1, ... runs - 1 from their middle."""
    return runs * (runs**2 - 1) / 12
