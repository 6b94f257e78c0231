"""New runs against a baseline that has a past: the robust history behind a comparison.

Where a series has a level, its runs stand beside the baseline's own and teach its noise; runs that
stray from it move nothing, and are remembered: what strayed before may stray again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, copysign, inf, log, sqrt

import numpy as np
import numpy.typing as npt

from tracker.stats.change_point import changes_in
from tracker.stats.compare import CONFIDENCE, Comparison, centre, compare_runs
from tracker.stats.level import Mask, fit
from tracker.stats.noise import Noise, learn, learn_elsewhere, learn_from_steps
from tracker.stats.screen import may_change
from tracker.stats.shift import SHORTEST_LEVEL
from tracker.stats.summary import LogMedian

Array = npt.NDArray[np.float64]
# A baseline this improbable on the level before it is not of that level.
_OFF_LEVEL = 0.001
# A run that strayed excuses a later one that is at most so much further out.
_ALIKE = 0.7


@dataclass(frozen=True, slots=True)
class Standing:
    """Head against base, and what the runs before base add.

    `level_runs` is how many of these form the level before, 0 without one. `level` is head against
    that level alone where base does not belong to it. `strays` of the level's `runs` lie about as
    far from it as head, on its side; `stray_chance` is how likely head's runs are all of that kind,
    0 without strays. `distance` of head is in standard deviations of one run more: from the level,
    or from base where there is no level or several runs of base left it. `newest` is the level of
    the runs before base, None without one, and `prior` the noise that was expected before any;
    `young` are the runs before base where these are too few for a level.
    """

    comparison: Comparison
    level: Comparison | None = None
    level_runs: int = 0
    strays: int = 0
    runs: int = 0
    stray_chance: float = 0.0
    distance: float = 0.0
    newest: "Newest | None" = None
    prior: Noise | None = None
    young: tuple[LogMedian, ...] = ()

    @property
    def lone_base(self) -> bool:
        """Whether base is a single run that is not of the level before it."""
        return self.level is not None and self.comparison.base_runs == 1

    @property
    def by_level(self) -> bool:
        """Whether head is held against the level of the runs before base."""
        return self.level_runs > 0 and (self.level is None or self.lone_base)

    @property
    def p_value(self) -> float:
        """How surprising head is: beside a lone base, by what surprises less, base or the level."""
        if self.level is None or not self.lone_base:
            return self.comparison.p_value
        return max(self.comparison.p_value, self.level.p_value)

    @property
    def left_both(self) -> bool:
        """Whether head left base and, beside a lone base, the level before it the same way."""
        c, level = self.comparison, self.level
        if level is None or not self.lone_base:
            return c.significant
        return c.significant and level.significant and c.effect * level.effect > 0

    def runs_to_dismiss_strays(self, confidence: float) -> int:
        """Return how many more runs of head as far out would make strays no explanation."""
        share = (self.strays + 1) / (self.runs + 1)
        return max(1, ceil(log(1 - confidence) / log(share)) - self.comparison.head_runs)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest level of a series: the runs since its last change, and those that stray."""

    runs: tuple[LogMedian, ...]
    strays: Array


@dataclass(frozen=True, slots=True)
class Past:
    """The runs of a series before base, oldest first, and their newest level.

    `newest` is None where too few runs have it; then `elsewhere`, the newest levels of the series
    on other boards, tell how far runs on one board wander.
    """

    runs: tuple[LogMedian, ...]
    newest: Newest | None
    elsewhere: tuple[Newest, ...] = ()


def past_of(runs: Sequence[LogMedian]) -> Past:
    """Return the past that runs are, oldest first."""
    return pasts_of([runs])[0]


def pasts_of(series: Sequence[Sequence[LogMedian]]) -> list[Past]:
    """Return the pasts of many series; those that never changed are seen together."""
    found = [Past(tuple(runs), None) for runs in series]
    by_length = sorted(range(len(series)), key=lambda number: len(series[number]))
    for runs, group in groupby(by_length, key=lambda number: len(series[number])):
        if runs >= SHORTEST_LEVEL:
            numbers = list(group)
            levels = _newest_levels([found[number].runs for number in numbers])
            for number, newest in zip(numbers, levels, strict=True):
                found[number] = replace(found[number], newest=newest)
    return found


def _newest_levels(series: Sequence[Sequence[LogMedian]]) -> Iterator[Newest | None]:
    """Yield the newest level of each of many series of one length."""
    logs = np.array([[run.value for run in runs] for runs in series])
    # Logarithms of seconds are far from zero and of either sign: changes are looked for in seconds.
    seconds = np.exp(logs - logs.mean(axis=1, keepdims=True))
    counts = fit(logs).counts
    for number, may in enumerate(may_change(seconds).tolist()):
        changes = changes_in(seconds[number]) if may else ()
        begin = changes[-1].index if changes else 0
        values, counted = logs[number, begin:], counts[number]
        if begin:
            counted = fit(values[None]).counts[0] if values.size >= SHORTEST_LEVEL else None
        yield None if counted is None else _newest(series[number][begin:], values, counted)


def _newest(runs: Sequence[LogMedian], values: Array, counted: Mask) -> Newest:
    kept = tuple(run for run, counts in zip(runs, counted.tolist(), strict=True) if counts)
    return Newest(kept, values[~counted])


def against(
    base: Sequence[LogMedian],
    head: Sequence[LogMedian],
    past: Sequence[LogMedian] | Past = (),
    *,
    noise: Noise,
    confidence: float = CONFIDENCE,
    extra: float = 0.0,
) -> Standing:
    """Compare head with base, whose series had the runs of `past` before, oldest first.

    The first of `base` is its newest. `noise` is the prior, `extra` as in `compare_runs`.
    """
    if len(base) > SHORTEST_LEVEL:  # repeats enough for a level of their own
        before = past.runs if isinstance(past, Past) else past
        base, past = base[:1], (*before, *base[:0:-1])
    past = past if isinstance(past, Past) else past_of(past)
    newest = past.newest
    if newest is None:
        learned = learn_elsewhere(noise, [_values(level.runs) for level in past.elsewhere])
        learned = learn_from_steps(learned, [run.value for run in past.runs])
        comparison = compare_runs(base, head, noise=learned, confidence=confidence, extra=extra)
        young = past.runs if len(past.runs) < SHORTEST_LEVEL else ()
        return Standing(comparison, young=young, distance=_from_base(comparison, base, head))
    level = newest.runs
    if _off_level(base, level, noise):
        other = learn(noise, _values(level))
        comparison = compare_runs(base, head, noise=other, confidence=confidence, extra=extra)
        alone = compare_runs(level, head, noise=noise, confidence=confidence, extra=extra)
        found = Standing(comparison, alone, len(level), newest=newest, prior=noise)
        if not found.lone_base:
            return replace(found, distance=_from_base(comparison, base, head))
        return _from_level(found, newest, head, alone.noise.sigma)
    both = (*level, *base)
    comparison = compare_runs(both, head, noise=noise, confidence=confidence, extra=extra)
    found = Standing(comparison, None, len(level), newest=newest, prior=noise)
    return _from_level(found, newest, head, comparison.noise.sigma)


def _from_base(
    comparison: Comparison, base: Sequence[LogMedian], head: Sequence[LogMedian]
) -> float:
    """Return the distance of head where it is held against base alone."""
    return _in_units(centre(head) - centre(base), comparison.noise.sigma, len(base))


def _from_level(
    standing: Standing, newest: Newest, head: Sequence[LogMedian], sigma: float
) -> Standing:
    level = float(_values(newest.runs).mean())
    shift = float(_values(head).mean()) - level
    count = alike(newest.strays - level, shift)
    runs = len(newest.runs) + newest.strays.size
    return replace(
        standing,
        strays=count,
        runs=runs,
        stray_chance=((count + 1) / (runs + 1)) ** len(head) if count else 0.0,
        distance=_in_units(shift, sigma, len(newest.runs)),
    )


def _in_units(shift: float, sigma: float, runs: int) -> float:
    """Return a shift in what is expected of one run more beside the mean of so many."""
    expected = sigma * sqrt(1 + 1 / runs)
    return shift / expected if expected > 0 else copysign(inf, shift) if shift else 0.0


def alike(strays: Array, shift: float) -> int:
    """Return how many strays lie about as far from their level as a shift does, on its side."""
    return int(np.sum(strays * np.sign(shift) >= _ALIKE * abs(shift)))


def _off_level(base: Sequence[LogMedian], level: Sequence[LogMedian], noise: Noise) -> bool:
    found = compare_runs(level, base, noise=noise)
    return found.p_value < _OFF_LEVEL


def _values(runs: Sequence[LogMedian]) -> Array:
    return np.array([run.value for run in runs])
