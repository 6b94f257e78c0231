"""The noise between runs: the prior, and what a series' own steps say of it."""

from math import log

import numpy as np
import pytest

from tracker.stats.noise import PRIOR_RUNS, Noise, learn_from_steps

PRIOR = Noise(0.005, PRIOR_RUNS, "prior")


def test_few_runs_leave_the_prior_alone() -> None:
    assert learn_from_steps(PRIOR, [log(1.0), log(1.06), log(1.0)]) == PRIOR


def test_a_time_that_jumps_between_two_values_is_noise() -> None:
    # As torch's two launches of scale_relu did on an H200: 20.4 or 21.7 us from process to process.
    learned = learn_from_steps(PRIOR, np.log([20.4, 21.7, 20.4, 21.7, 21.7, 20.5, 21.7]).tolist())
    assert learned.sigma > 0.02
    assert learned.degrees > PRIOR.degrees


def test_a_level_that_changed_is_no_noise() -> None:
    steady = learn_from_steps(PRIOR, np.log([1.0] * 5 + [1.05] * 5).tolist())
    assert steady.sigma < PRIOR.sigma


def test_a_change_and_its_return_among_few_runs_is_no_noise() -> None:
    assert learn_from_steps(PRIOR, np.log([1.0, 1.0, 1.0, 1.05, 1.0]).tolist()).sigma < PRIOR.sigma


def test_the_scatter_of_many_runs_is_found_whatever_the_prior() -> None:
    values = np.random.default_rng(1).normal(0, 0.02, 400)
    assert learn_from_steps(PRIOR, values.tolist()).sigma == pytest.approx(0.02, rel=0.1)
