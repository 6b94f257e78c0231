"""Student's t, the normal tail and the symmetric beta, one value at a time and without SciPy.

To load SciPy's takes a command a tenth of a second, more than all that it would ask of them.

Source: NIST Digital Library of Mathematical Functions, 8.17.22 (the continued fraction of the
incomplete beta function) and 5.11.13 (ratios of gamma functions); Hill, Algorithm 395, CACM 13
(1970), for many degrees of freedom.
"""

from functools import lru_cache
from math import erfc, exp, gamma, inf, log, log1p, pi, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
# From so many degrees on t is told as the normal quantile of the same probability, exact to 1e-13.
_MANY = 1e4
# The gamma functions of larger arguments are told by a series, in powers of 1/x.
_LARGE = 20.0
_EXACT = 2e-16
# Where the density is below e to this power, no weight is told from zero.
_NOTHING = -80.0


def normal_tail(score: float) -> float:
    """Return the chance of a standard normal value above a score."""
    return 0.5 * erfc(score / sqrt(2))


def tail(t: float, degrees: float) -> float:
    """Return the chance of a t above `t` (0 or more), with so many degrees of freedom above 0."""
    if t == inf:
        return 0.0
    if degrees > _MANY:
        return normal_tail(_as_normal(t, degrees))
    a, square = degrees / 2, t * t
    whole = degrees + square
    if whole == inf:
        return 0.0
    front = exp(-a * log1p(square / degrees)) * t / sqrt(whole) / _beta(a)
    if square * (a + 1) > degrees * 1.5:
        return front / (2 * a) / _fraction(a, 0.5, degrees / whole)
    return 0.5 - front / _fraction(0.5, a, square / whole)


# A suite asks for the same few again and again.
@lru_cache(maxsize=4096)
def quantile(chance: float, degrees: float) -> float:
    """Return the t that is exceeded with this chance, of 0 to one half."""
    if chance <= 0:
        return inf
    score = -NormalDist().inv_cdf(chance)
    t = score + (score**3 + score) / (4 * degrees)
    for _ in range(100):
        # Newton's method on the logarithm of the tail, which bends little.
        left = tail(t, degrees)
        if left <= 0:
            t /= 2
            continue
        step = left * log(left / chance) / _density(t, degrees)
        t = max(t + step, t / 2)
        if abs(step) <= 4 * _EXACT * t:
            break
    return t


def symmetric_beta(half: float, shares: Array) -> Array:
    """Return the distribution of a beta with both parameters `half`, at sorted shares of 0 to 1."""
    off = np.abs(1 - 2 * shares)
    found = np.zeros_like(shares)
    with np.errstate(divide="ignore"):
        logs = half * np.log1p(-(off**2))
    near = logs > _NOTHING
    if near.any():
        below = (1 - off[near]) / 2
        front = np.exp(logs[near]) / (2 * half * _beta(half))
        found[near] = front / _fractions(half, half, below)
    return np.where(shares > 0.5, 1 - found, found)


def _as_normal(t: float, degrees: float) -> float:
    a = degrees - 0.5
    b = 48 * a * a
    z = sqrt(a * log1p(t * t / degrees))
    cube = z**3
    return (
        z
        + (cube + 3 * z) / b
        - (
            (4 * cube * cube * z + 33 * cube * z * z + 240 * cube + 855 * z)
            / (10 * b * (b + 0.8 * cube * z + 100))
        )
    )


def _density(t: float, degrees: float) -> float:
    a = degrees / 2
    return exp(-(a + 0.5) * log1p(t * t / degrees)) / (sqrt(degrees) * _beta(a))


@lru_cache(maxsize=4096)
def _beta(a: float) -> float:
    """Return the beta function of a and one half."""
    if a < _LARGE:
        return gamma(a) * sqrt(pi) / gamma(a + 0.5)
    x = 1 / a
    series = x / 8 - x**3 / 192 + x**5 / 640 - 17 * x**7 / 14336 + 31 * x**9 / 18432
    return sqrt(pi / a) * exp(series)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta, for x below (a + 1) / (a + b + 2)."""
    # Lentz's method, two steps at once.
    up, down = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = 1 / down
    for m in range(1, 10_000):
        at = a + 2 * m
        even = m * (b - m) * x / ((at - 1) * at)
        odd = -(a + m) * (a + b + m) * x / (at * (at + 1))
        down, up = 1 / (1 + even * down), 1 + even / up
        found *= 1 / (up * down)
        down, up = 1 / (1 + odd * down), 1 + odd / up
        change = up * down
        found /= change
        if abs(change - 1) <= _EXACT:
            break
    return found


def _fractions(a: float, b: float, x: Array) -> Array:
    """Return `_fraction` of many x, from the end of as many terms as the slowest takes."""
    terms = 30 + int(4 * sqrt(a))
    found = np.ones_like(x)
    for m in range(terms, 0, -1):
        at = a + 2 * m
        odd = -(a + m) * (a + b + m) / (at * (at + 1))
        even = m * (b - m) / ((at - 1) * at)
        found = 1 + even * x / (1 + odd * x / found)
    return 1 - (a + b) / (a + 1) * x / found
