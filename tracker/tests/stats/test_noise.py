"""The noise between runs: the prior, and what a series' own steps say of it."""

from math import log

import numpy as np
import pytest

from tracker.stats.noise import (
    MOST_DEGREES,
    PRIOR_RUNS,
    Noise,
    learn_elsewhere,
    learn_from_steps,
    prior,
    quieter,
    quietness,
)

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


def test_other_boards_tell_how_far_runs_wander_and_not_where() -> None:
    rng = np.random.default_rng(5)
    boards = [level + 0.001 * rng.standard_normal(40) for level in (0.0, 0.3)]
    learned = learn_elsewhere(PRIOR, boards)
    # 78 degrees of freedom at 0.1 % beside five at 0.5 %.
    expected = ((78 * 0.001**2 + 5 * 0.005**2) / 83) ** 0.5
    assert learned.sigma == pytest.approx(expected, rel=0.1)
    assert learned.degrees == MOST_DEGREES
    assert learned.source == "80 runs on other boards and the prior"


def test_no_other_board_leaves_the_prior_alone() -> None:
    assert learn_elsewhere(PRIOR, []) == PRIOR


def test_a_suite_tells_how_quiet_its_machine_is() -> None:
    rng = np.random.default_rng(3)
    expected = prior(1e-3, "cpu")
    quiet = quietness(list(0.1 * rng.standard_normal(60)))
    assert 0.08 < quiet < 0.16
    assert quieter(expected, quiet).sigma == pytest.approx(quiet * expected.sigma)
    assert "as quiet as this suite" in quieter(expected, quiet).source


def test_a_suite_never_makes_noise_of_a_change_of_all_its_cases() -> None:
    assert quietness([5.0] * 60) == 1
    assert quieter(prior(1e-3, "cpu"), 1.0) == prior(1e-3, "cpu")


def test_a_few_changed_cases_do_not_hide_a_quiet_machine() -> None:
    rng = np.random.default_rng(4)
    assert quietness([*(0.1 * rng.standard_normal(50)), *[9.0] * 10]) < 0.2


def test_a_handful_of_cases_says_nothing_of_the_machine() -> None:
    assert quietness([0.01] * 7) == 1
