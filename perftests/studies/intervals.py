"""The median of a few times and the interval that it lies in."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Middle:
    """Median, and the ends of its interval, in the unit of the sample."""

    median: float
    low: float
    high: float


def middle(sample: Sequence[float]) -> Middle:
    """Return the median with its 95 % interval from the sample's order, whatever its distribution.

    The interval is between the k-th smallest and the k-th largest value, k as large as a binomial
    distribution allows; below six values none reaches 95 %, and the whole range stands for it.
    Raises ValueError for an empty sample. Source: David and Nagaraja, "Order Statistics", 7.1.
    """
    if not sample:
        raise ValueError("cannot tell the median of an empty sample: expected one value or more")
    ordered = sorted(sample)
    count = len(ordered)
    below, k = 0.0, 0
    while k < count // 2:
        below += comb(count, k) / 2**count
        if 2 * below > 1 - _CONFIDENCE:
            break
        k += 1
    k = max(k, 1)
    return Middle(median(ordered), ordered[k - 1], ordered[-k])
