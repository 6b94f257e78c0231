"""What a sample says in a few numbers, and how well its median is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import pi, sqrt

import numpy as np
import numpy.typing as npt

from tracker.model import Summary
from tracker.stats.student import symmetric_beta

Array = npt.NDArray[np.float64]
# Standard deviations of a Gaussian per interquartile range: 1 / (2 * 0.67449).
IQR_TO_SD = 0.741301
# So many samples are remembered.
_REMEMBERED = 4096
# So many measurements are looked at together: a few copies of 4 MB.
_AT_ONCE = 500_000


@dataclass(frozen=True, slots=True)
class LogMedian:
    """The logarithm of a sample's median, its standard error and the sample's robust spread.

    `error` and `spread` are in logarithm, so close to fractions of the median.
    """

    value: float
    error: float
    spread: float
    count: int


# What was found of a sample, by its identity, which lasts while it stands here: a judgement asks
# for the same few a dozen times, and to hash a hundred numbers would take longer than the answer.
_seen: dict[int, tuple[tuple[float, ...], LogMedian]] = {}


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
    sample = measurements if isinstance(measurements, tuple) else tuple(measurements)
    if (known := _seen.get(id(sample))) is not None:
        return known[1]
    (found,) = _remembered([sample], _checked(sample)[None])
    return found


def see(samples: Iterable[tuple[float, ...]]) -> None:
    """Look at many samples of positive numbers at once, so that `log_median` knows each."""
    by_length: dict[int, list[tuple[float, ...]]] = {}
    for sample in samples:
        if id(sample) not in _seen:
            by_length.setdefault(len(sample), []).append(sample)
    for length, group in by_length.items():
        at_once = max(1, _AT_ONCE // length)
        for begin in range(0, len(group), at_once):
            part = group[begin : begin + at_once]
            _remembered(part, np.array(part))


def _remembered(samples: Sequence[tuple[float, ...]], rows: Array) -> list[LogMedian]:
    found = _log_medians(rows)
    _seen.update((id(s), (s, median)) for s, median in zip(samples, found, strict=True))
    for old in list(islice(_seen, max(0, len(_seen) - _REMEMBERED))):
        _seen.pop(old, None)
    return found


def median_error(spread: float, count: int) -> float:
    """Return the standard error of the log median of a Gaussian sample of this spread."""
    return sqrt(pi / 2 / max(1, count)) * spread


def _log_medians(rows: Array) -> list[LogMedian]:
    """Return what `log_median` says of each row; whatever stands beside it changes no bit."""
    logs = np.sort(np.log(rows), axis=1)
    n = logs.shape[1]
    weights = _weights(n)
    centre = (logs * weights).sum(axis=1)
    variance = ((logs - centre[:, None]) ** 2 * weights).sum(axis=1)
    q1, median, q3 = (_quantiles(logs, share) for share in (0.25, 0.5, 0.75))
    errors = np.hypot(np.sqrt(variance), _ticks(logs) / np.sqrt(12.0))
    spreads = (q3 - q1) * IQR_TO_SD
    columns = (median.tolist(), errors.tolist(), spreads.tolist())
    return [LogMedian(*values, n) for values in zip(*columns, strict=True)]


@lru_cache(maxsize=256)
def _weights(n: int) -> Array:
    """Return the share of resamples whose median is each of `n` sorted values."""
    edges = symmetric_beta((n + 1) / 2, np.linspace(0.0, 1.0, n + 1))
    weights: Array = np.diff(edges)
    weights.flags.writeable = False
    return weights


def _quantiles(rows: Array, share: float) -> Array:
    """Return what `np.quantile` does of sorted rows, to the bit: that takes longer to ask."""
    place = (rows.shape[1] - 1) * share
    below = int(place)
    low, high = rows[:, below], rows[:, min(below + 1, rows.shape[1] - 1)]
    part = place - below
    found: Array = high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part
    return found


def _ticks(rows: Array) -> Array:
    """Return the step of a timer whose sorted readings repeat, 0 where they hardly ever do."""
    steps = np.diff(rows, axis=1)
    moves = steps > 0
    count = moves.sum(axis=1)
    smallest = np.min(steps, axis=1, where=moves, initial=np.inf)
    return np.where((count < 1) | (2 * (count + 1) > rows.shape[1]), 0.0, smallest)


def _checked(measurements: Sequence[float]) -> Array:
    values = np.asarray(measurements, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"cannot summarise measurements of shape {values.shape}: expected one or more"
        )
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("cannot summarise measurements: expected finite positive numbers only")
    return values
