"""What stands beside a time: an empty kernel's, and the rate of a sum of two arrays.

All are measured in the run itself, in the result's cache mode, by its timer. The copy's share is
`Result.copy_fraction`; a copy reads as much as it writes, a sum of two arrays twice as much.
"""

import re
from math import isfinite, prod

from tracker.model import Case, Result

SMALL = 10.0
"""A time below so many empty kernels' is small: a good part of it is the launch, not the work."""

LAUNCH_BOUND = "launch-bound"
"""What people read where a share of a peak would stand, of a time that is mostly the launch."""

LAUNCH_BOUND_MEANS = "most of the time is the launch, so the bandwidth says nothing of the memory"

NEAR_FLOOR = "near_floor"
"""The code of the warning with which a record says that most of a time is the launch."""

_BITS = re.compile(r"[a-z]+(\d{1,3})(?!\d)")
# A sum of two arrays moves three of its shape; scales and the like add a little.
_LEAST_ARRAYS, _MOST_ARRAYS = 2.5, 3.5


def floor_beside(result: Result) -> float | None:
    """Return the seconds of an empty kernel where the result's time is small beside them."""
    floor = result.peaks.floor_s
    if floor is None or result.summary is None:
        return None
    return floor if is_small(result.summary.median_s, floor) else None


def is_small(time_s: float, floor_s: float) -> bool:
    """Return whether a time is small beside an empty kernel's; never where one of them is NaN."""
    return time_s < SMALL * floor_s


def launch_bound(result: Result) -> bool:
    """Return whether the record says that most of the time is the launch.

    Then the bandwidth, and its share of a peak, say nothing of the memory.
    """
    return any(warning.code == NEAR_FLOOR for warning in result.warnings)


def sum_fraction(result: Result) -> float | None:
    """Return bandwidth over that of a sum of two arrays that moved as many bytes in the same run.

    None where either is not known.
    """
    rate, of_sum = result.bandwidth, result.peaks.two_read_bytes_per_s
    if rate is None or not of_sum:
        return None
    fraction = rate / of_sum
    return fraction if isfinite(fraction) else None


def fits_sum(result: Result) -> bool:
    """Return whether a result moved about three arrays of its shape, as a sum of two does.

    Then the sum is the fairer yardstick. What a record says of shape, dtype and bytes decides: it
    does not tell reads from writes.
    """
    array = _array_bytes(result.case)
    if not array or result.bytes_moved is None:
        return False
    return _LEAST_ARRAYS * array <= result.bytes_moved <= _MOST_ARRAYS * array


def _array_bytes(case: Case) -> float | None:
    bits = _BITS.match(case.dtype)
    return None if bits is None else prod(case.shape) * int(bits[1]) / 8
