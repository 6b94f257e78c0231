"""Kinds of noise that a series of runs may have, as seeded simulations.

Each returns an array (series, runs) of deviations from the level in units of the nominal standard
deviation; lower is worse, as for a bandwidth.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from tracker.stats.level import Array

Noise = Callable[[Generator, int, int], Array]


def gaussian(rng: Generator, series: int, runs: int) -> Array:
    """Return independent Gaussian runs."""
    return rng.standard_normal((series, runs))


def spikes(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs of which 3 % fall by another 10 standard deviations."""
    return gaussian(rng, series, runs) - 10.0 * (rng.random((series, runs)) < 0.03)


def autocorrelated(rng: Generator, series: int, runs: int) -> Array:
    """Return a first-order autoregression with coefficient 0.5 and unit variance."""
    fresh = gaussian(rng, series, runs)
    found = np.empty_like(fresh)
    found[:, 0] = fresh[:, 0]
    for i in range(1, runs):
        found[:, i] = 0.5 * found[:, i - 1] + np.sqrt(0.75) * fresh[:, i]
    return found


def heavy_tails(rng: Generator, series: int, runs: int) -> Array:
    """Return runs of Student's t with 3 degrees of freedom, scaled to unit variance."""
    found: Array = rng.standard_t(3, (series, runs)) / np.sqrt(3)
    return found


def two_levels(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs of which 30 % lie 2 standard deviations lower."""
    return gaussian(rng, series, runs) - 2.0 * (rng.random((series, runs)) < 0.3)


def slow_drift(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs that lose 2 standard deviations per 100 runs."""
    return gaussian(rng, series, runs) - 0.02 * np.arange(runs)


def steep_drift(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs that lose 5 standard deviations per 100 runs."""
    return gaussian(rng, series, runs) - 0.05 * np.arange(runs)


def uneven(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs, each of a standard deviation of its own from 0.5 to 1.5."""
    return gaussian(rng, series, runs) * rng.uniform(0.5, 1.5, (series, runs))


def waves(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs whose standard deviation swings from 0.3 to 1.7 within 40 runs."""
    phase = rng.random((series, 1))
    return gaussian(rng, series, runs) * (
        1 + 0.7 * np.sin(2 * np.pi * (np.arange(runs) / 40 + phase))
    )


def growing(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs whose standard deviation grows from 0.5 to 1.5 within 100 runs."""
    return gaussian(rng, series, runs) * (0.5 + np.arange(runs) / 100)


def quantised(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs rounded to a timer's steps of one standard deviation."""
    return np.round(gaussian(rng, series, runs))


def coarse(rng: Generator, series: int, runs: int) -> Array:
    """Return Gaussian runs rounded to steps of two standard deviations, at any offset."""
    return 2.0 * np.round(gaussian(rng, series, runs) / 2 + rng.random((series, 1)))


def constant(rng: Generator, series: int, runs: int) -> Array:
    """Return runs without any noise."""
    del rng
    return np.zeros((series, runs))


NOISES: Mapping[str, Noise] = MappingProxyType(
    {
        "Gaussian": gaussian,
        "downward spikes": spikes,
        "AR(1) 0.5": autocorrelated,
        "heavy tails, t(3)": heavy_tails,
        "two levels": two_levels,
        "drift, 2 % in 100 runs": slow_drift,
        "drift, 5 % in 100 runs": steep_drift,
        "uneven, each run 0.5-1.5 %": uneven,
        "uneven, waves 0.3-1.7 %": waves,
        "uneven, grows 0.5-1.5 %": growing,
        "quantised, steps of 1 %": quantised,
        "quantised, steps of 2 %": coarse,
    }
)
