"""Monitors fed together: the same state as fed one by one, whatever the series."""

import numpy as np
import numpy.typing as npt
import pytest

from tracker.stats.feed import feed
from tracker.stats.monitor import Monitor

Rows = npt.NDArray[np.float64]
EFFECT = 0.005


def series(seed: int, count: int, runs: int) -> Rows:
    """Return series of every kind: steps, spikes, drifts, a coarse timer, no noise at all."""
    rng = np.random.default_rng(seed)
    rows = 100 * np.exp(0.004 * rng.standard_normal((count, runs)))
    for number, row in enumerate(rows):
        kind = number % 8
        for at in rng.integers(3, runs, kind if kind < 4 else 0):
            row[at:] *= 1 + rng.choice([-1, 1]) * rng.uniform(0.003, 0.05)
        if kind == 4:
            row[:] = np.round(row * 2) / 2
        elif kind == 5:
            row[rng.random(runs) < 0.1] *= rng.uniform(0.7, 1.5)
        elif kind == 6:
            row[:] = 100
            row[rng.integers(1, runs) :] *= rng.choice([1.00005, 1.01, 0.99])
        elif kind == 7:
            row[:] = row * (1 + np.arange(runs) * rng.normal(0, 0.001))
    return rows


def one_by_one(rows: Rows, learned: list[int]) -> tuple[list[Monitor], int]:
    """Return monitors fed run by run, and how many changes they called."""
    monitors, calls = [], 0
    for row, quiet in zip(rows, learned, strict=True):
        monitor = Monitor(minimal_effect=EFFECT)
        monitor.learn(row[:quiet].tolist())
        told = [monitor.update(float(value)) for value in row[quiet:]]
        calls += sum(verdict.change_at is not None for verdict in told)
        monitors.append(monitor)
    return monitors, calls


def alike(first: Monitor, second: Monitor) -> bool:
    return vars(first) == vars(second)


@pytest.mark.parametrize(
    ("count", "runs"),
    [
        (96, 40),
        (8, 230),
        pytest.param(1600, 48, marks=pytest.mark.slow),
        pytest.param(800, 90, marks=pytest.mark.slow),
    ],
)
def test_monitors_fed_together_are_as_if_fed_one_by_one(count: int, runs: int) -> None:
    rows = series(count, count, runs)
    learned = [0 if number % 3 else runs - 10 for number in range(count)]
    expected, calls = one_by_one(rows, learned)
    assert calls > count / 8, "the series must change for this to show anything"
    found = feed(rows, [EFFECT] * count, learned)
    assert all(alike(a, b) for a, b in zip(expected, found, strict=True))


def test_a_monitor_that_missed_a_change_is_not_alike() -> None:
    rows = series(5, 8, 40)
    expected, _ = one_by_one(rows, [0] * 8)
    found = feed(rows, [EFFECT] * 8, [40] * 8)
    assert not all(alike(a, b) for a, b in zip(expected, found, strict=True))


def test_no_series_is_no_monitor() -> None:
    assert feed(np.empty((0, 30)), []) == []
