"""How far the median of a whole run wanders when nothing changed.

A sample of one process does not contain this noise: memory layout, clocks and heat are drawn once
per process. It is learned from a series' own runs; before there are any, a prior stands in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from statistics import median_low

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# The whole suite in six fresh processes on one H200, root mean square by duration: 0.7 % at 10-20
# us, 0.4 % at 60 us, 0.10 % at 80-200 us, 0.13 % above, where cases of several launches stand out;
# 1.9 % at 5 us in a study of one kernel. That is an absolute jitter and a share of the time.
GPU_JITTER_S = 0.14e-6
GPU_SHARE = 0.0012
# Two shared cores, ten fresh processes: 2-7 % inside the cache, at times a factor of two outside.
CPU_JITTER_S = 2e-6
CPU_SHARE = 0.08
# The same cores while other programs come and go (docs/results/cpu-sessions.md): most cases stray
# no more than that, and one now and then by a factor of four. So until a CPU is known its prior
# counts like so few runs, whose tails are heavy and which the runs to come soon outweigh; like one
# more where a suite shows how restless its other cases were.
CPU_FIRST_RUNS = 3.0
CPU_SUITE_RUNS = 4.0
# A sample's own robust spread hints at the machine: on the H200 runs differ by 1/8 to 1/16 of it.
SPREAD_SHARE = 0.1
# Of a series' own steps from run to run: the fewest that say anything, and what the median of their
# sizes is worth beside a standard deviation (its asymptotic efficiency, Rousseeuw and Croux 1993).
LEAST_STEPS = 3
MEDIAN_EFFICIENCY = 0.37
# The prior counts like this many runs already seen.
PRIOR_RUNS = 5.0
# On an H200 the tails between processes are a Gaussian's or lighter; elsewhere they need not be.
# More runs than this make the size of the noise better known, and not its tails.
MOST_DEGREES = 12.0
# A CPU may be far quieter than its prior: so many cases of a suite show it, never below a share.
LEAST_CASES = 8
QUIETEST = 0.05
# Two boards of one model: 0.4-1.2 % apart in time, 0.1-0.2 % in copy fraction.
BOARD_COPY_FRACTION = 0.002


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviation between runs (in logarithm), its degrees of freedom and its source."""

    sigma: float
    degrees: float
    source: str


def prior(duration_s: float, backend: str, spread: float = 0.0) -> Noise:
    """Return the noise to expect of launches of `duration_s` on a "cuda" or "cpu" backend."""
    jitter, share = (GPU_JITTER_S, GPU_SHARE) if backend == "cuda" else (CPU_JITTER_S, CPU_SHARE)
    sigma = max(hypot(jitter / duration_s, share), SPREAD_SHARE * spread)
    return Noise(sigma, PRIOR_RUNS, f"prior for {backend} at this duration")


def heavy_tailed(noise: Noise, share: float) -> Noise:
    """Return the prior of a CPU of which nothing is known: it may be busy now or may have been.

    `share` of the prior's is what the suite showed, 1 where it showed nothing (`quietness`).
    """
    runs = CPU_SUITE_RUNS if share < 1 else CPU_FIRST_RUNS
    return Noise(noise.sigma, runs, f"{noise.source}; other work may move it far more")


def learn(noise: Noise, *groups: Array) -> Noise:
    """Return the prior updated by groups of run values (in logarithm), each around its own mean.

    The variance is the mean of the prior's and the observed one, weighted by their degrees of
    freedom (the scaled inverse chi-square update).
    """
    seen = sum(g.size - 1 for g in groups if g.size)
    if seen == 0:
        return noise
    squares = sum(float(np.sum((g - g.mean()) ** 2)) for g in groups if g.size)
    degrees = noise.degrees + seen
    sigma = float(np.sqrt((noise.degrees * noise.sigma**2 + squares) / degrees))
    runs = sum(g.size for g in groups)
    degrees = max(min(degrees, MOST_DEGREES), noise.degrees)
    return Noise(sigma, degrees, f"{runs} runs of this series and the {noise.source}")


def learn_elsewhere(noise: Noise, boards: Sequence[Array]) -> Noise:
    """Return the prior updated by a series' runs on other boards, as `learn` takes groups.

    Boards differ in level, hardly in how far the runs of one wander; and a board that was just put
    in has no past to learn that from.
    """
    runs = sum(board.size for board in boards)
    if not runs:
        return noise
    source = f"{runs} runs on other boards and the {noise.source}"
    return replace(learn(noise, *boards), source=source)


def learn_from_steps(noise: Noise, values: Sequence[float]) -> Noise:
    """Return the prior updated by how a series moved from one run to the next.

    `values` are the logarithms of earlier runs, oldest first. The median size of the steps counts,
    so that a level that changed now and then is not taken for noise, and a time that jumps between
    two values from process to process is.
    """
    if len(values) <= LEAST_STEPS:
        return noise
    steps = np.abs(np.diff(values))
    seen = 1.4826 * float(median_low(steps.tolist())) / sqrt(2)
    worth = MEDIAN_EFFICIENCY * steps.size
    degrees = noise.degrees + worth
    sigma = sqrt((noise.degrees * noise.sigma**2 + worth * seen**2) / degrees)
    degrees = max(min(degrees, MOST_DEGREES), noise.degrees)
    return Noise(sigma, degrees, f"{len(values)} earlier runs and the {noise.source}")


def quietness(distances: Sequence[float]) -> float:
    """Return the share of its prior that a machine's noise is, from all cases of a suite at once.

    `distances` are head over base in logarithm, each in units of what the prior expects of it. The
    median tells the noise as long as most cases did not change; it never widens the prior, or a
    change of the whole suite would pass for noise. 1 where there are too few cases.
    """
    if len(distances) < LEAST_CASES:
        return 1.0
    seen = 1.4826 * float(np.median(np.abs(distances)))
    # The median of few is itself uncertain by about this share.
    return min(1.0, max(QUIETEST, seen * (1 + 1.2 / sqrt(len(distances)))))


def quieter(noise: Noise, share: float) -> Noise:
    """Return the noise that is expected of a machine whose noise is a share of the prior's."""
    if share == 1:
        return noise
    return Noise(noise.sigma * share, noise.degrees, f"{noise.source}, as quiet as this suite")
