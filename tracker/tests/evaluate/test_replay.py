"""What a stored series could have shown."""

import numpy as np
import pytest

from tracker.evaluate.replay import DROPS, Power, power


def series(runs: int, sigma: float, seed: int = 1) -> list[float]:
    return list(3e12 * (1 + sigma * np.random.default_rng(seed).standard_normal(runs)))


def powers(values: list[float], duration_s: float = 1e-4) -> Power:
    return power(values, [duration_s] * len(values), "cuda", np.random.default_rng(0))


def test_the_noise_of_a_series_is_found_without_its_changes() -> None:
    values = [*series(40, 0.01), *(0.8 * v for v in series(40, 0.01, seed=2))]
    found = powers(values)
    assert found.changes == 1
    assert found.noise == pytest.approx(0.01, rel=0.25)


def test_a_quieter_series_shows_smaller_losses() -> None:
    loud, quiet = powers(series(60, 0.02)), powers(series(60, 0.002))
    assert quiet.gate_loss < loud.gate_loss
    assert quiet.monitor_loss is not None
    assert loud.monitor_loss is not None
    assert quiet.monitor_loss <= 0.01 < loud.monitor_loss <= 0.1
    assert quiet.monitor_loss in DROPS


def test_the_monitor_finds_about_three_noise_sds() -> None:
    found = powers(series(80, 0.01))
    assert found.monitor_loss is not None
    assert 0.015 <= found.monitor_loss <= 0.05
    assert found.false_alarms is not None
    assert found.false_alarms < 1


@pytest.mark.parametrize("runs", [1, 2, 5, 17])
def test_a_short_series_tells_only_what_the_gate_could_show(runs: int) -> None:
    found = powers(series(runs, 0.01))
    assert found.runs == runs
    assert 0 < found.gate_loss < 0.5
    assert found.monitor_loss is None
    assert found.false_alarms is None


def test_a_constant_series_is_no_trouble() -> None:
    found = powers([3e12] * 30)
    assert found.noise == 0
    assert found.monitor_loss is not None
