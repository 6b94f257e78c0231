"""The two experiments behind every figure: clean series that grow, and a drop after a clean past.

Clean series grow from 20 to 100 runs and every alarm, of a loss or a gain, is false. For detection,
40 clean runs are followed by a drop. One setting of every rule serves all noises.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from tracker.evaluate.noises import Noise
from tracker.model import CHANGES, VerdictKind
from tracker.stats.against import against, pasts_of
from tracker.stats.change_point import ChangePoint, history, revise
from tracker.stats.compare import CONFIDENCE
from tracker.stats.fdr import discoveries
from tracker.stats.level import Array
from tracker.stats.monitor import Monitor
from tracker.stats.noise import PRIOR_RUNS
from tracker.stats.noise import Noise as Expected
from tracker.stats.shift import scan
from tracker.stats.summary import LogMedian
from tracker.stats.tails import Tails
from tracker.suite import SUITE_RATE

YOUNG, OLD, PAST, WITHIN = 20, 100, 40, 5
LEVEL, SHARE = 100.0, 0.01
CASES = 200


def values(deviations: Array) -> Array:
    """Return bandwidths around 100 with a noise of 1 %."""
    return LEVEL * (1 + SHARE * deviations)


def false_alarms(noise: Noise, rng: Generator, series: int) -> float:
    """Return false alarms per 100 runs, each series followed to its first.

    Many series at once, by the same rule as the monitor's.
    """
    rows = values(noise(rng, series, OLD))
    silent = np.ones(series, dtype=bool)
    alarms = tested = 0
    for runs in range(YOUNG + 1, OLD + 1):
        loss, gain = scan(rows[silent, :runs])
        tested += int(silent.sum())
        alarms += int((loss | gain).sum())
        silent[silent] = ~(loss | gain)
    return 100 * alarms / tested


def found(noise: Noise, rng: Generator, series: int, drop: float) -> Array:
    """Return the share of series in which a drop, a fraction, is called at run 1, 2, ... WITHIN."""
    rows = values(noise(rng, series, PAST + WITHIN))
    rows[:, PAST:] *= 1 - drop
    called = [scan(rows[:, : PAST + after])[0] for after in range(1, WITHIN + 1)]
    share: Array = np.logical_or.accumulate(np.array(called), axis=0).mean(axis=1)
    return share


@dataclass(frozen=True, slots=True)
class Watched:
    """What a monitor did on clean series, per run; extra runs and alarms are of the tested runs."""

    false_alarms: float
    extra_runs: float
    asked: float


def watch(noise: Noise, rng: Generator, series: int, *, remeasure: bool) -> Watched:
    """Feed clean series to monitors run by run and count alarms, per 100 runs, and extra runs."""
    alarms = extra = asked = 0
    for row in values(noise(rng, series, OLD)):
        monitor = Monitor()
        for i, value in enumerate(row):
            again = _Again(noise, rng, 1.0) if remeasure and i >= YOUNG else None
            verdict = monitor.update(float(value), again)
            if i >= YOUNG:
                alarms += verdict.kind in CHANGES
                extra += len(verdict.repeats)
                asked += bool(verdict.repeats)
    tested = series * (OLD - YOUNG)
    return Watched(100 * alarms / tested, extra / tested, asked / tested)


def noticed(noise: Noise, rng: Generator, series: int, drop: float, *, remeasure: bool) -> Array:
    """Return the share of series in which monitors call a drop at run 1, 2, ... WITHIN."""
    hits = np.zeros(WITHIN)
    rows = values(noise(rng, series, PAST + WITHIN))
    rows[:, PAST:] *= 1 - drop
    for row in rows:
        monitor = Monitor()
        for i, value in enumerate(row):
            scale = 1 - drop if i >= PAST else 1.0
            again = _Again(noise, rng, scale) if remeasure and i >= YOUNG else None
            verdict = monitor.update(float(value), again)
            if i >= PAST and verdict.kind is VerdictKind.REGRESSION:
                hits[i - PAST :] += 1
                break
    return hits / series


class _Again:
    """Fresh runs of the same commit."""

    def __init__(self, noise: Noise, rng: Generator, scale: float) -> None:
        self._noise, self._rng, self._scale = noise, rng, scale

    def __call__(self, count: int) -> Sequence[float]:
        return [float(v) * self._scale for v in values(self._noise(self._rng, 1, count))[0]]


@dataclass(frozen=True, slots=True)
class Placed:
    """How well the history rule placed one step: shares of series."""

    exact: float
    within_two: float
    extra: float


def placed(noise: Noise, rng: Generator, series: int, drop: float) -> Placed:
    """Plant one drop in the middle of 100 runs and look where the history rule puts it."""
    rows = values(noise(rng, series, OLD))
    rows[:, OLD // 2 :] *= 1 - drop
    changes = [history(list(row)).changes for row in rows]
    miss = np.array([min((abs(c.index - OLD // 2) for c in cs), default=OLD) for cs in changes])
    extra = float(np.mean([max(0, len(cs) - 1) for cs in changes]))
    return Placed(float(np.mean(miss == 0)), float(np.mean(miss <= 2)), extra)


def false_changes(noise: Noise, rng: Generator, series: int) -> tuple[float, float]:
    """Return the shares of clean series of 100 runs with a change point, and told as drift."""
    found_ = [history(list(row)) for row in values(noise(rng, series, OLD))]
    return (
        float(np.mean([bool(h.changes) for h in found_])),
        float(np.mean([h.drift is not None for h in found_])),
    )


def retracted(noise: Noise, rng: Generator, series: int, drop: float) -> tuple[float, float]:
    """Return change points told and later retracted, per series, as runs are added from 10 to 100.

    A drop stands in the middle; 0 makes every told point a false one.
    """
    rows = values(noise(rng, series, OLD))
    rows[:, OLD // 2 :] *= 1 - drop
    told = gone = 0
    for row in rows:
        seen: list[tuple[ChangePoint, ...]] = [
            history(list(row[:runs])).changes for runs in range(10, OLD + 1)
        ]
        for before, after in pairwise(seen):
            revision = revise(before, after)
            told += len(revision.added)
            gone += len(revision.retracted)
    return told / series, gone / series


def suites(
    noise: Noise, rng: Generator, count: int, drop: float = 0.0, cases: int = CASES
) -> tuple[float, float]:
    """Judge one run of whole suites by the gate, each case after 20 runs of its level.

    Returns the share of suites in which anything is called but the first case, and the share in
    which that one, whose bandwidth fell by `drop`, is. The prior is as wide as the noise.
    """
    expected = Expected(SHARE, PRIOR_RUNS, "prior")
    wrong = hit = 0
    for _ in range(count):
        costs = -SHARE * noise(rng, cases, YOUNG + 1)
        costs[0, -1] -= np.log1p(-drop)
        calls = _called(costs, expected)
        hit += bool(calls[0])
        wrong += bool(calls[1:].any())
    return wrong / count, hit / count


def _called(costs: Array, expected: Expected) -> npt.NDArray[np.bool_]:
    """Return which rows the gate calls at their last run, false discovery held over all rows."""
    seen = [[LogMedian(float(cost), 0.0, 0.0, 1) for cost in row] for row in costs]
    pasts = pasts_of([runs[:-2] for runs in seen])
    found = [
        against([runs[-2]], [runs[-1]], past, noise=expected)
        for runs, past in zip(seen, pasts, strict=True)
    ]
    tails = Tails(found)
    changed = [f.left_both and f.stray_chance <= 1 - CONFIDENCE for f in found]
    chances = [
        max(f.p_value, tails.least_chance(f)) if called else 1.0
        for f, called in zip(found, changed, strict=True)
    ]
    held: npt.NDArray[np.bool_] = np.array(changed) & discoveries(chances, SUITE_RATE)
    return held
