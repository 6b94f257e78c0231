"""What a sample says in a few numbers, and how well its median is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np
import numpy.typing as npt

from tracker.model import Summary
from tracker.stats.student import symmetric_beta

Array = npt.NDArray[np.float64]
# Standard deviations of a Gaussian per interquartile range: 1 / (2 * 0.67449).
IQR_TO_SD = 0.741301


@dataclass(frozen=True, slots=True)
class LogMedian:
    """The logarithm of a sample's median, its standard error and the sample's robust spread.

    `error` and `spread` are in logarithm, so close to fractions of the median.
    """

    value: float
    error: float
    spread: float
    count: int


def summarize(measurements_s: Sequence[float]) -> Summary:
    """Return the summary of one or more positive measurements in seconds, else ValueError."""
    values = _checked(measurements_s)
    q1, median, q3 = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return Summary(
        count=values.size,
        median_s=median,
        mean_s=float(values.mean()),
        min_s=float(values.min()),
        max_s=float(values.max()),
        q1_s=q1,
        q3_s=q3,
        stddev_s=float(values.std(ddof=1)) if values.size > 1 else 0.0,
    )


def log_median(measurements: Sequence[float]) -> LogMedian:
    """Return the log of the median with its standard error.

    The error is the larger of the exact bootstrap's (no resampling needed) and what the timer's
    resolution leaves open.

    Source: Maritz and Jarrett, A note on estimating the variance of the sample median, JASA 73
    (1978).
    """
    return _log_median(tuple(measurements))


def forget_samples() -> None:
    """Forget what was found of samples, so that a benchmark finds it anew."""
    _log_median.cache_clear()


def median_error(spread: float, count: int) -> float:
    """Return the standard error of the log median of a Gaussian sample of this spread."""
    return sqrt(pi / 2 / max(1, count)) * spread


# A judgement asks for the same few samples of each of a suite's cases a dozen times.
@lru_cache(maxsize=4096)
def _log_median(measurements: tuple[float, ...]) -> LogMedian:
    logs = np.sort(np.log(_checked(measurements)))
    n = logs.size
    weights = _weights(n)
    centre = float(weights @ logs)
    variance = float(weights @ (logs - centre) ** 2)
    q1, median, q3 = (_quantile(logs, share) for share in (0.25, 0.5, 0.75))
    error = float(np.hypot(np.sqrt(variance), _tick(logs) / np.sqrt(12.0)))
    return LogMedian(median, error, (q3 - q1) * IQR_TO_SD, n)


@lru_cache(maxsize=256)
def _weights(n: int) -> Array:
    """Return the share of resamples whose median is each of `n` sorted values."""
    edges = symmetric_beta((n + 1) / 2, np.linspace(0.0, 1.0, n + 1))
    weights: Array = np.diff(edges)
    weights.flags.writeable = False
    return weights


def _quantile(values: Array, share: float) -> float:
    """Return what `np.quantile` does of sorted values, to the bit: that takes longer to ask."""
    place = (values.size - 1) * share
    below = int(place)
    low, high = float(values[below]), float(values[min(below + 1, values.size - 1)])
    part = place - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def _tick(logs: Array) -> float:
    """Return the step of a timer whose sorted readings repeat, 0 when they hardly ever do."""
    steps = np.diff(logs)
    steps = steps[steps > 0]
    if steps.size < 1 or 2 * (steps.size + 1) > logs.size:
        return 0.0
    return float(steps.min())


def _checked(measurements: Sequence[float]) -> Array:
    values = np.asarray(measurements, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"cannot summarise measurements of shape {values.shape}: expected one or more"
        )
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("cannot summarise measurements: expected finite positive numbers only")
    return values
