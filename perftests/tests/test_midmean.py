"""Grouped launches: finer than the timer's step, and deaf to the few that took long."""

from __future__ import annotations

import numpy as np
import pytest

from perftests.harness.cuda_runners import midmeans


def test_a_group_of_one_changes_nothing() -> None:
    assert midmeans([3.0, 1.0, 2.0], 1) == [3.0, 1.0, 2.0]


def test_the_middle_half_of_each_group_is_averaged_and_a_rest_left_out() -> None:
    assert midmeans([1.0, 9.0, 2.0, 3.0, 4.0, 4.0, 4.0, 0.0, 7.0], 4) == [2.5, 4.0]


def test_the_median_stays_where_that_of_single_launches_is() -> None:
    """Launch times have a tail to the right; a mean of groups would follow it by several percent."""
    random = np.random.default_rng(7)
    exact = 4.5e-6 * (1 + 0.02 * random.standard_normal(8000) + 0.1 * random.exponential(1, 8000))
    ticks = np.round(exact / 32e-9) * 32e-9
    found = float(np.median(midmeans(ticks.tolist(), 8)))
    assert found == pytest.approx(float(np.median(exact)), rel=0.005)
    assert float(np.median(ticks.reshape(-1, 8).mean(axis=1))) / found > 1.01
