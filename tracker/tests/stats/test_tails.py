"""The tails of a suite's noise, from its earlier runs."""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import t as student

from tracker.stats.against import Newest, Standing, against
from tracker.stats.compare import compare
from tracker.stats.noise import Noise
from tracker.stats.summary import LogMedian
from tracker.stats.tails import Tails, distances, young_distances

PRIOR = Noise(0.01, 5.0, "prior")
NOTHING = compare([1.0, 1.1], [1.0, 1.1])


def runs(values: np.ndarray) -> list[LogMedian]:
    return [LogMedian(float(value), 0.0, 0.0, 1) for value in values]


def standing(values: np.ndarray, strays: tuple[float, ...] = ()) -> Standing:
    newest = Newest(tuple(runs(values)), np.array(strays))
    return Standing(NOTHING, None, len(values), newest=newest, prior=PRIOR)


def suite(deviations: np.ndarray) -> Tails:
    return Tails([standing(0.01 * row) for row in deviations])


def test_each_run_is_held_against_the_others_as_if_it_were_new() -> None:
    values = 0.01 * default_rng(1).standard_normal(20)
    found = distances(Newest(tuple(runs(values)), np.array([0.2])), PRIOR)
    for place in (0, 7, 19):
        others = np.delete(values, place)
        squares = float(((others - others.mean()) ** 2).sum())
        sigma = np.sqrt((5 * 0.01**2 + squares) / (5 + 18) * (1 + 1 / 19))
        assert found[place] == pytest.approx((values[place] - others.mean()) / sigma)
    squares = float(((values - values.mean()) ** 2).sum())
    sigma = np.sqrt((5 * 0.01**2 + squares) / (5 + 19) * (1 + 1 / 20))
    assert found[20] == pytest.approx((0.2 - values.mean()) / sigma)


def test_a_power_law_is_told_far_beyond_the_farthest_run() -> None:
    # The cost of Student's t with 3 degrees: 4,000 runs, asked for what one in 20,000 shows.
    rng = default_rng(2)
    told = []
    for _ in range(20):
        tails = suite(rng.standard_t(3, (200, 20)) / np.sqrt(3))
        told.append(tails.beyond(float(student.isf(2.5e-5, 3)) / np.sqrt(3)))
    assert 5e-5 / 3 < float(np.median(told)) < 5e-5 * 6


def test_gaussian_tails_let_a_clear_change_stand() -> None:
    tails = suite(default_rng(3).standard_normal((200, 20)))
    assert tails.beyond(10.0) < 5e-5
    assert tails.beyond(2.0) == pytest.approx(2 * student.sf(2.0, 24), rel=0.3)


def test_each_side_has_its_own_tail() -> None:
    rng = default_rng(4)
    spikes = 10.0 * (rng.random((200, 20)) < 0.03)
    tails = suite(rng.standard_normal((200, 20)) + spikes)
    assert tails.beyond(12.0) > 1e-3 > tails.beyond(-12.0)


def test_too_few_runs_have_no_tail_and_count_by_themselves() -> None:
    quiet = 0.01 * default_rng(5).standard_normal((3, 20))
    tails = Tails(
        [standing(row, strays=(0.1,) if place == 0 else ()) for place, row in enumerate(quiet)]
    )
    assert tails.beyond(10.0) == tails.beyond(5.0) == pytest.approx(2 / 61)
    assert tails.beyond(-10.0) == tails.beyond(20.0) == 0.0
    assert suite(default_rng(5).standard_normal((4, 20))).beyond(20.0) > 0.0
    assert Tails([]).beyond(5.0) == 0.0


def test_without_a_level_base_may_be_what_strayed() -> None:
    tails = suite(default_rng(6).standard_t(3, (200, 20)))
    past = runs(0.01 * default_rng(7).standard_normal(20))
    head, base = runs(np.array([0.1])), runs(np.array([0.0]))
    by_level = against(base, head, past, noise=PRIOR)
    by_base = against(base, head, (), noise=PRIOR)
    assert by_level.by_level
    assert not by_base.by_level
    both = tails.beyond(by_base.distance) + tails.beyond(-by_base.distance)
    assert tails.least_chance(by_base) == pytest.approx(min(1.0, both))
    assert tails.least_chance(by_level) == tails.beyond(by_level.distance)


def test_repeats_as_far_out_make_strays_unlikely() -> None:
    tails = suite(default_rng(8).standard_t(3, (200, 20)))
    past = runs(0.01 * default_rng(9).standard_normal(20))
    one = against(past[:1], runs(np.array([0.08])), past, noise=PRIOR)
    three = against(past[:1], runs(np.array([0.08, 0.08, 0.08])), past, noise=PRIOR)
    assert tails.least_chance(three) == pytest.approx(tails.beyond(three.distance) ** 3)
    assert tails.least_chance(three) < tails.least_chance(one) / 50


def test_series_too_young_for_a_level_tell_what_strays_by_their_own_runs() -> None:
    rng = default_rng(10)
    spikes = 10.0 * (rng.random((200, 6)) < 0.05)
    pasts = 0.01 * (rng.standard_normal((200, 6)) + spikes)
    zero = runs(np.array([0.0]))
    found = [against(zero, zero, runs(past), noise=PRIOR) for past in pasts]
    assert not any(one.by_level for one in found)
    assert Tails(found).beyond(4.0) == pytest.approx(2 * spikes.astype(bool).mean(), rel=0.2)
    assert (
        Tails([against(zero, zero, runs(past[:2]), noise=PRIOR) for past in pasts]).beyond(9) == 0
    )


def test_a_young_run_is_held_against_the_middle_of_the_others() -> None:
    found = young_distances(runs(np.array([0.0, 0.01, 0.02, 0.30])), 0.01)
    expected = np.array([-0.02, -0.01, 0.01, 0.29]) / (0.01 * np.sqrt(4 / 3))
    assert found == pytest.approx(expected)
