"""What a stored series could have shown: its noise, and its past replayed with planted drops."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tracker.evaluate.protocol import WITHIN
from tracker.stats.change_point import history
from tracker.stats.compare import compare_runs
from tracker.stats.level import Array
from tracker.stats.noise import prior
from tracker.stats.segments import levels, without_spikes
from tracker.stats.shift import GAP, SHORTEST_LEVEL, scan
from tracker.stats.summary import LogMedian

# Runs before a drop that can be found: a level, then the window that shows it.
SHORTEST = SHORTEST_LEVEL + GAP
DROPS = (0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
_ENOUGH = 0.8
_MOST_PLACES = 20
# Runs that a simulated series of the suite holds when its false alarms are counted.
_LONG = 60


@dataclass(frozen=True, slots=True)
class Power:
    """What one series could have shown.

    `noise` is relative, between runs, changes of level left out. `gate_loss` is the smallest loss
    that one new run would show against the runs of the newest level, `monitor_loss` the smallest
    planted drop that four of five replays found within five runs; None where the series is short.
    `false_alarms` is per 100 runs, from the series' own noise drawn anew.
    """

    runs: int
    noise: float
    changes: int
    gate_loss: float
    monitor_loss: float | None
    false_alarms: float | None


def power(
    values: Sequence[float], durations_s: Sequence[float], backend: str, rng: Generator
) -> Power:
    """Return what a series of positive bandwidths could have shown; `durations_s` are its times."""
    series = np.asarray(values, dtype=np.float64)
    found = history(list(series))
    steady, cuts = _steady(series, [change.index for change in found.changes])
    newest = np.log(series[cuts[-1] if cuts else 0 :])
    runs = [LogMedian(float(v), 0.0, 0.0, 1) for v in newest]
    expected = prior(float(np.median(durations_s)), backend)
    loss = compare_runs(runs, runs[-1:], noise=expected).detectable
    noise = float(steady.std(ddof=1) / steady.mean()) if steady.size > 1 else expected.sigma
    long_enough = steady.size >= SHORTEST + WITHIN
    return Power(
        runs=series.size,
        noise=noise,
        changes=len(cuts),
        gate_loss=loss,
        monitor_loss=_smallest_found(steady) if long_enough else None,
        false_alarms=_false_alarms(steady, rng) if long_enough else None,
    )


def _steady(series: Array, cuts: list[int]) -> tuple[Array, list[int]]:
    """Return the series with its changes of level taken out, and where they were."""
    level = levels(without_spikes(series), cuts) if series.size > 1 else series
    return series / level * level[-1], cuts


def _smallest_found(steady: Array) -> float | None:
    """Return the smallest of DROPS that most replays find within five runs, None if none is."""
    places = np.arange(SHORTEST, steady.size - WITHIN + 1)
    places = places[:: max(1, -(-places.size // _MOST_PLACES))]
    hits = np.zeros((len(DROPS), places.size), dtype=bool)
    for column, place in enumerate(places):
        rows = np.tile(steady[: place + WITHIN], (len(DROPS), 1))
        rows[:, place:] *= 1 - np.array(DROPS)[:, None]
        for after in range(1, WITHIN + 1):
            hits[:, column] |= scan(rows[:, : place + after])[0]
    good = np.flatnonzero(hits.mean(axis=1) >= _ENOUGH)
    return DROPS[good[0]] if good.size else None


def _false_alarms(steady: Array, rng: Generator, series: int = 100) -> float:
    """Return alarms per 100 runs in series drawn from this one's runs, neighbours kept together."""
    block = 5
    starts = rng.integers(0, steady.size - block + 1, (series, -(-_LONG // block)))
    rows = steady[(starts[:, :, None] + np.arange(block)).reshape(series, -1)[:, :_LONG]]
    silent = np.ones(series, dtype=bool)
    alarms = tested = 0
    for runs in range(SHORTEST + WITHIN, _LONG + 1):
        loss, gain = scan(rows[silent, :runs])
        tested += int(silent.sum())
        alarms += int((loss | gain).sum())
        silent[silent] = ~(loss | gain)
    return 100 * alarms / tested
