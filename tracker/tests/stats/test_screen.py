"""The screen lets nothing go that the search would find."""

import numpy as np
import pytest

from tracker.stats.change_point import change_points
from tracker.stats.screen import may_change

SERIES = 150


def rows(kind: str, runs: int, step: float, seed: int) -> np.ndarray:
    """Return series around 1 with 0.4 % noise of a kind, half of them with a step somewhere."""
    rng = np.random.default_rng((seed, runs))
    noise = rng.normal(0, 0.004, (SERIES, runs))
    if kind == "spikes":
        noise -= 0.05 * (rng.random(noise.shape) < 0.05)
    elif kind == "correlated":
        for i in range(1, runs):
            noise[:, i] += 0.6 * noise[:, i - 1]
    elif kind == "quantised":
        noise = np.round(noise / 0.002) * 0.002
    elif kind == "drift":
        noise += np.linspace(0, 0.02, runs)
    places = rng.integers(0, runs, SERIES)
    after = np.arange(runs)[None, :] >= places[:, None]
    steps = np.where(rng.random(SERIES) < 0.5, step * rng.choice([-1, 1], SERIES), 0.0)
    return np.asarray(4e12 * (1 + noise + steps[:, None] * after))


@pytest.mark.parametrize("kind", ["plain", "spikes", "correlated", "quantised", "drift"])
@pytest.mark.parametrize(("runs", "step"), [(8, 0.03), (50, 0.01), (137, 0.004)])
def test_what_is_let_go_has_no_change(kind: str, runs: int, step: float) -> None:
    series = rows(kind, runs, step, seed=5)
    kept = may_change(series, 0.005)
    found = [
        any(abs(point.effect) >= 0.005 for point in change_points(row.tolist())) for row in series
    ]
    assert not any(np.array(found) & ~kept)


def test_clean_series_are_mostly_let_go_and_a_step_is_kept() -> None:
    clean = np.random.default_rng(3).normal(1, 0.004, (500, 50))
    assert may_change(clean).mean() < 0.35
    clean[:, 30:] *= 0.97
    assert may_change(clean).all()


@pytest.mark.parametrize("runs", [1, 3, 5])
def test_short_series_have_no_level_to_leave(runs: int) -> None:
    assert not may_change(np.linspace(1, 2, 4 * runs).reshape(4, runs)).any()


def test_constant_series_never_changed() -> None:
    assert not may_change(np.full((2, 40), 3.0)).any()
    series = np.full((1, 40), 3.0)
    series[0, 20:] = 3.1
    assert may_change(series).all()
    assert len(change_points(series[0].tolist())) == 1
