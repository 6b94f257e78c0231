"""Two sides against each other: ratio of centres, its interval and how surprising it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, sqrt

import numpy as np
import numpy.typing as npt

from tracker.stats.noise import Noise, learn
from tracker.stats.student import quantile, tail
from tracker.stats.summary import LogMedian, log_median

Array = npt.NDArray[np.float64]
CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class Comparison:
    """Head over base.

    `effect` is head / base - 1 and `interval` its confidence interval; `detectable` is the smallest
    change that this comparison would call significant; `p_value` is two-sided.
    """

    effect: float
    interval: tuple[float, float]
    p_value: float
    detectable: float
    noise: Noise
    base_runs: int
    head_runs: int

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def compare(
    base: Sequence[float],
    head: Sequence[float],
    *,
    noise: Noise | None = None,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare the medians of two samples, each from one process.

    Without `noise` the answer holds for these two processes only: what a fresh process would add is
    not in their samples. Values are finite and positive, else ValueError.
    """
    return compare_runs(
        [log_median(base)],
        [log_median(head)],
        noise=noise or Noise(0.0, inf, "none"),
        confidence=confidence,
    )


def compare_runs(
    base: Sequence[LogMedian],
    head: Sequence[LogMedian],
    *,
    noise: Noise,
    confidence: float = CONFIDENCE,
    extra: float = 0.0,
) -> Comparison:
    """Compare two groups of runs, each run known by the log of its median.

    The noise between runs is learned from the groups, with `noise` as the prior. `extra` is a
    further standard deviation (in logarithm) that no repetition removes, such as another board's.
    """
    runs = len(base), len(head)
    # Two lone runs, as in most comparisons, teach nothing of the noise.
    learned = noise if runs == (1, 1) else learn(noise, _values(base), _values(head))
    variance = (
        learned.sigma**2 * (1 / runs[0] + 1 / runs[1]) + _within(base) + _within(head) + extra**2
    )
    return _judge_shift(centre(head) - centre(base), sqrt(variance), learned, runs, confidence)


def _judge_shift(
    shift: float, error: float, noise: Noise, runs: tuple[int, int], confidence: float
) -> Comparison:
    degrees = noise.degrees if np.isfinite(noise.degrees) else 1e9
    reach = quantile(1 - (1 + confidence) / 2, degrees) * error
    apart = abs(shift) / error if error > 0 else inf if shift else 0.0
    return Comparison(
        effect=exp(shift) - 1,
        interval=(exp(shift - reach) - 1, exp(shift + reach) - 1),
        p_value=2 * tail(apart, degrees),
        detectable=1 - exp(-reach),
        noise=noise,
        base_runs=runs[0],
        head_runs=runs[1],
    )


def runs_to_decide(
    comparison: Comparison, confidence: float = CONFIDENCE, *, both: bool = False, limit: int = 100
) -> int | None:
    """Return how many more runs of head (or of each side) would make this very effect significant.

    None where `limit` more would not do.
    """
    shift = abs(np.log1p(comparison.effect))
    if shift == 0:
        return None
    reach = quantile(1 - (1 + confidence) / 2, min(comparison.noise.degrees, 1e9))
    room = (shift / (reach * comparison.noise.sigma)) ** 2 if comparison.noise.sigma else inf
    if both:
        needed = ceil(2 / room) - min(comparison.base_runs, comparison.head_runs)
    else:
        room -= 1 / comparison.base_runs
        needed = ceil(1 / room) - comparison.head_runs if room > 0 else limit + 1
    return max(1, needed) if needed <= limit else None


def centre(side: Sequence[LogMedian]) -> float:
    """Return the mean of one or more runs; most sides are one, which needs no NumPy."""
    return side[0].value if len(side) == 1 else float(_values(side).mean())


def _values(side: Sequence[LogMedian]) -> Array:
    return np.array([run.value for run in side])


def _within(side: Sequence[LogMedian]) -> float:
    return sum(m.error**2 for m in side) / len(side) ** 2
