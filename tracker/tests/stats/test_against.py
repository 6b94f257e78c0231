"""The past of many series at once: the same newest level as found in each alone."""

import numpy as np

from tracker.stats.against import past_of, pasts_of
from tracker.stats.change_point import history
from tracker.stats.level import fit
from tracker.stats.summary import LogMedian

RUNS = 40


def runs_of(values: list[float]) -> list[LogMedian]:
    return [LogMedian(value, 0.0001, 0.002, 50) for value in np.log(values).tolist()]


def measured(number: int) -> list[float]:
    """Return a series: steady, with a step, with a step near its end, or with spikes."""
    rng = np.random.default_rng(number)
    values = 1e-4 * np.exp(0.003 * rng.standard_normal(RUNS if number % 5 else RUNS - 3))
    at = {1: 20, 2: values.size - 4}.get(number % 4)
    if at is not None:
        values[at:] *= 1.03
    if number % 4 == 3:
        values[rng.integers(0, values.size, 2)] *= 1.2
    return [float(value) for value in values]


def alone(values: list[float]) -> list[float] | None:
    """Return the newest level of one series by the history rule, None where it is too short."""
    changes = history(list(np.array(values) / np.exp(np.log(values).mean()))).changes
    level = np.log(values[changes[-1].index if changes else 0 :])
    return level[fit(level[None]).counts[0]].tolist() if level.size >= 8 else None


def test_many_pasts_have_the_levels_that_each_has_alone() -> None:
    values = [measured(number) for number in range(60)] + [[1e-4] * 7, []]
    pasts = pasts_of([runs_of(series) for series in values])
    for series, past in zip(values, pasts, strict=True):
        expected = alone(series) if len(series) >= 8 else None
        found = None if past.newest is None else [run.value for run in past.newest.runs]
        assert found == expected
    levels = [past.newest for past in pasts]
    assert levels.count(None) > 10, "a step near the end leaves too few runs for a level"
    assert sum(len(level.strays) > 0 for level in levels if level) > 10


def test_one_past_is_as_one_of_many() -> None:
    runs = runs_of(measured(1))
    (among, _) = pasts_of([runs, runs_of(measured(2))])
    alone_ = past_of(runs)
    assert alone_.runs == among.runs
    assert alone_.newest is not None
    assert among.newest is not None
    assert alone_.newest.runs == among.newest.runs
