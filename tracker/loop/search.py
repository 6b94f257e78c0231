"""Which commit changed the speed, as probabilities: a bisection that survives noise.

Pure. Positions count along a line of commits: 0 is the good one, 1 to n those after it; hypothesis
k says that commit k made the whole change. Shifts are logarithms of a ratio of times.

Source: the Bayesian form of noisy bisection, as in Horstein, Sequential transmission using
noiseless feedback, IEEE Trans. Inf. Theory 9 (1963), with Gaussian observations in place of bits.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import log2, sqrt

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

Array = npt.NDArray[np.float64]
# A reading that has nothing to do with either level: rare, but it must not rule out a commit.
OUTLIER = 0.01
# A commit is taken for the last good one while the chance that it is slow stays below this.
DOUBT = 0.02
ODD_Z = 4.0
_GRID = 31


@dataclass(frozen=True, slots=True)
class Level:
    """A shift with its standard error."""

    shift: float
    error: float


@dataclass(frozen=True, slots=True)
class Spread:
    """How processes of one commit differed: squares of logarithms and their degrees of freedom."""

    squares: float = 0.0
    degrees: int = 0

    def __add__(self, other: "Spread") -> "Spread":
        return Spread(self.squares + other.squares, self.degrees + other.degrees)

    def error(self, runs: int) -> float:
        """Return the standard error of a shift between two commits with so many processes each."""
        return sqrt(self.squares / self.degrees * 2 / runs) if self.degrees and runs else 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Commit `at` measured in turns with commit `against` (positions): the shift between them.

    `runs` processes of each, whose differences are in `spread`.
    """

    against: int
    at: int
    level: Level
    runs: int = 0
    spread: Spread = Spread()


@dataclass(slots=True)
class Search:
    """The state of a bisection over `count` commits for a change of `step` between its ends.

    `spread` is how the processes of the ends differed. All commits have one noise between
    processes: what the ends and all readings show of it bounds each reading's error from below.
    """

    count: int
    step: Level
    spread: Spread = Spread()
    readings: list[Reading] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)

    def error(self, reading: Reading) -> float:
        """Return the standard error of a reading, by itself and by what all processes show."""
        spread = sum((other.spread for other in self.readings), self.spread)
        return max(reading.level.error, spread.error(reading.runs))

    def probabilities(self) -> Array:
        """Return, for positions 1 to n, the probability that this commit made the change.

        The size of the change is known within its error only: the same unknown number in every
        reading, so it is summed over, not added to each reading's error.
        """
        position = np.arange(1, self.count + 1)
        offsets = np.linspace(-3.0, 3.0, _GRID)
        sizes = self.step.shift + self.step.error * offsets
        log_weight = np.tile(norm.logpdf(offsets), (self.count, 1))
        for reading in self.readings:
            log_weight += np.log(self._likelihood(reading, position[:, None], sizes[None, :]))
        weight = np.exp(log_weight - log_weight.max()).sum(axis=1)
        found: Array = weight / weight.sum()
        return found

    def _likelihood(self, reading: Reading, culprit: npt.NDArray[np.int64], sizes: Array) -> Array:
        changed = (reading.against < culprit) & (culprit <= reading.at)
        close = norm.pdf(reading.level.shift, np.where(changed, sizes, 0.0), self.error(reading))
        wide = norm.pdf(reading.level.shift, self.step.shift / 2, 3 * abs(self.step.shift))
        likelihood: Array = (1 - OUTLIER) * close + OUTLIER * wide
        return likelihood

    def last_good(self) -> int:
        """Return the last position that is very likely as fast as the good end."""
        slow = np.cumsum(self.probabilities())
        good = [0, *(i for i in self._measurable() if slow[i - 1] < DOUBT)]
        return max(good)

    def next(self) -> int | None:
        """Return the position whose measurement halves the doubt best; None when none can help.

        The last position is never asked for: what lies between the ends is known already.
        """
        slow = np.cumsum(self.probabilities())
        inside = [i for i in self._measurable() if i < self.count and 0 < slow[i - 1] < 1]
        return min(inside, key=lambda i: (abs(slow[i - 1] - 0.5), i), default=None)

    def ahead(self, against: int, at: int, certainty: float) -> list[int]:
        """Return what is asked for next if `at` is as fast as the good end, and as the bad one.

        Nothing where that makes one group as likely as `certainty`.
        """
        found = []
        for shift in (0.0, self.step.shift):
            reading = Reading(against, at, Level(shift, self.step.error))
            then = replace(self, readings=[*self.readings, reading])
            position = then.next() if then.best()[1] < certainty else None
            if position is not None and position != at and position not in found:
                found.append(position)
        return found

    def groups(self) -> list[tuple[tuple[int, ...], float]]:
        """Return runs of positions that no measurement can tell apart, with their probability.

        Commit k and the one after it are told apart by measuring k; where k cannot be built, they
        stay together.
        """
        found: list[tuple[tuple[int, ...], float]] = []
        chances, group = self.probabilities(), list[int]()
        for position in range(1, self.count + 1):
            group.append(position)
            if position not in self.skipped or position == self.count:
                found.append((tuple(group), float(sum(chances[i - 1] for i in group))))
                group = []
        return found

    def best(self) -> tuple[tuple[int, ...], float]:
        """Return the most likely group with its probability."""
        return max(self.groups(), key=lambda pair: pair[1])

    def steps_left(self, wanted: float) -> int:
        """Return roughly how many more readings it takes to be that sure: one bit of doubt each."""
        chances = [chance for _, chance in self.groups() if chance > 0]
        doubt = -sum(chance * log2(chance) for chance in chances)
        allowed = -wanted * log2(wanted) - (1 - wanted) * log2(max(1 - wanted, 1e-9))
        return max(0, round(doubt - allowed + 0.5)) if self.best()[1] < wanted else 0

    def odd(self) -> list[Reading]:
        """Return readings that fit neither level: a sign of more than one change."""
        group, _ = self.best()
        culprit = np.array([group[-1]])
        found = []
        for reading in self.readings:
            changed = reading.against < culprit[0] <= reading.at
            expected = self.step.shift if changed else 0.0
            error = np.hypot(self.error(reading), self.step.error if changed else 0.0)
            if abs(reading.level.shift - expected) > ODD_Z * error:
                found.append(reading)
        return found

    def _measurable(self) -> Collection[int]:
        return [i for i in range(1, self.count + 1) if i not in self.skipped]


def levels(search: Search, shas: Sequence[str]) -> dict[str, Level]:
    """Return, by commit, the last reading of it; `shas` are those of positions 0 to n."""
    return {shas[reading.at]: reading.level for reading in search.readings}
