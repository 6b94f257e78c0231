"""When to stop sampling: precise enough, or no longer getting more precise.

The criteria are those of NVIDIA's nvbench (small noise or settled noise, a floor, caps), applied to
the standard error of the median instead of the standard deviation: what is reported is the median,
and one stray sample must not keep a run going.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING

from perftests.harness.summary import quartiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

PRECISE = "precise"
SETTLED = "settled"
SAMPLE_CAP = "sample cap"
TIME_CAP = "time cap"
SESSION_BUDGET = "session budget"
CUT_OFF = frozenset({SAMPLE_CAP, TIME_CAP, SESSION_BUDGET})
"""Reasons that say nothing about how precise a sample is."""
_NORMAL_IQR = 1.349
"""Interquartile range of a normal distribution, in standard deviations."""
_MEDIAN_EFFICIENCY = 1.2533
"""Standard error of a normal sample's median over that of its mean, sqrt(pi / 2)."""
_WINDOW = 6
_SETTLED_FACTOR = 4
"""Noise that has settled ends a sample only when its error is within this factor of the target."""
_BUDGETED_SAMPLES = 7
_SETTLED_SPREAD = 0.05


@dataclass(frozen=True)
class StopRule:
    """Limits of one case's sample.

    `target` is the relative standard error of the median; an error below `resolution_s` is small
    enough whatever the target, for a process shifts all of its launches by more. The floor
    (`min_samples`) holds against everything but the time cap; settled noise counts from
    `settle_samples` on, once the error is within four times the target: noise that is steadily
    large says nothing of the median. `budget_seconds` is a shorter time cap that the session's
    budget sets; a few measurements are taken all the same. Times in seconds of the whole loop,
    flushes included.
    """

    target: float = 5e-4
    resolution_s: float = 0.0
    min_samples: int = 30
    settle_samples: int = 64
    max_samples: int = 4000
    max_seconds: float = 0.3
    budget_seconds: float | None = None

    def target_at(self, median_s: float) -> float:
        """Return the relative standard error that is small enough at this median."""
        return max(self.target, self.resolution_s / median_s) if median_s > 0 else self.target


def relative_error(samples_s: Sequence[float] | np.ndarray) -> float:
    """Return the robust relative standard error of the median; infinity below two samples."""
    if len(samples_s) < 2:
        return float("inf")
    return _error(quartiles(samples_s), len(samples_s))


def _error(quarters: tuple[float, float, float], count: int) -> float:
    q1, median, q3 = quarters
    if median <= 0:
        return float("inf")
    return _MEDIAN_EFFICIENCY * (q3 - q1) / _NORMAL_IQR / sqrt(count) / median


@dataclass
class Stopper:
    """The rule applied batch by batch; it remembers how noisy the earlier batches looked."""

    rule: StopRule
    _noise: list[float] = field(default_factory=list)

    def decide(self, samples_s: Sequence[float] | np.ndarray, elapsed_s: float) -> str | None:
        """Return why sampling stops after this batch, or None to go on."""
        rule, count = self.rule, len(samples_s)
        if count >= rule.min_samples:
            quarters = quartiles(samples_s)
            error = _error(quarters, count)
            self._noise.append(error * sqrt(count))
            target = rule.target_at(quarters[1])
            if error <= target:
                return PRECISE
            near = error <= _SETTLED_FACTOR * target
            if count >= rule.settle_samples and near and self._is_settled():
                return SETTLED
        if count >= rule.max_samples:
            return SAMPLE_CAP
        if elapsed_s >= rule.max_seconds:
            return TIME_CAP
        budget = rule.budget_seconds
        is_spent = budget is not None and elapsed_s >= budget and count >= _BUDGETED_SAMPLES
        return SESSION_BUDGET if is_spent else None

    def _is_settled(self) -> bool:
        """Whether the noise, which no longer depends on the count, stays within a few percent."""
        window = self._noise[-_WINDOW:]
        if len(window) < _WINDOW:
            return False
        mean = sum(window) / _WINDOW
        return max(window) - min(window) <= _SETTLED_SPREAD * mean
