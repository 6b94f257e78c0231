"""Two sides against each other, and the noise between runs."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.stats.compare import compare, compare_runs, runs_to_decide
from tracker.stats.noise import MOST_DEGREES, Noise, learn, prior
from tracker.stats.summary import LogMedian, log_median, summarize

samples = st.lists(st.floats(1e-6, 1e-3), min_size=6, max_size=40)


def sample(center: float, seed: int, spread: float = 0.01, count: int = 100) -> list[float]:
    return list(center * np.exp(spread * np.random.default_rng(seed).standard_normal(count)))


def test_the_effect_is_the_ratio_of_medians() -> None:
    found = compare([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    assert found.effect == pytest.approx(1.0)
    assert found.interval[0] < 1.0 < found.interval[1]


@given(samples, samples)
def test_swapping_the_sides_mirrors_the_answer(a: list[float], b: list[float]) -> None:
    there, back = compare(a, b), compare(b, a)
    assert (1 + there.effect) * (1 + back.effect) == pytest.approx(1)
    assert there.p_value == pytest.approx(back.p_value)
    assert (1 + there.interval[0]) * (1 + back.interval[1]) == pytest.approx(1)


@given(samples, samples, st.floats(1e-3, 1e3), st.randoms())
def test_unit_and_order_do_not_matter(
    a: list[float], b: list[float], unit: float, rng: object
) -> None:
    shuffled = [v * unit for v in reversed(a)]
    assert compare(shuffled, [v * unit for v in b]).effect == pytest.approx(compare(a, b).effect)


def test_noise_between_runs_widens_the_interval_beyond_the_samples() -> None:
    a, b = sample(1.0, 1), sample(1.01, 2)
    assert compare(a, b).significant
    assert not compare(a, b, noise=Noise(0.01, inf, "known")).significant


def test_the_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(400):
        a, b = rng.lognormal(0, 0.05, (2, 60))
        low, high = compare(list(a), list(b), confidence=0.95).interval
        covered += low <= 0 <= high
    assert 0.92 <= covered / 400 <= 0.985


def test_more_runs_are_asked_for_a_smaller_effect() -> None:
    noise = Noise(0.01, 20.0, "known")

    def needed(shift: float) -> int | None:
        base, head = [LogMedian(0, 0, 0, 9)] * 10, [LogMedian(shift, 0, 0, 9)]
        return runs_to_decide(compare_runs(base, head, noise=noise))

    few, many = needed(0.035), needed(0.015)
    assert few is not None
    assert many is not None
    assert 1 <= few < many
    assert needed(1e-5) is None


def test_the_error_of_the_median_is_that_of_the_bootstrap() -> None:
    values = np.array(sample(1.0, 5, spread=0.1, count=41))
    rng = np.random.default_rng(0)
    drawn = np.median(np.log(rng.choice(values, (20_000, values.size))), axis=1).std()
    assert log_median(list(values)).error == pytest.approx(drawn, rel=0.03)


def test_a_coarse_timer_leaves_its_step_open() -> None:
    found = log_median([1.0] * 60 + [1.01] * 40)
    assert found.error >= np.log(1.01) / np.sqrt(12)


@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [1.0, 0.0], [-1.0]])
def test_what_is_no_time_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot summarise"):
        summarize(bad)


def test_a_summary_is_what_its_names_say() -> None:
    found = summarize([4.0, 1.0, 3.0, 2.0])
    assert (found.count, found.median_s, found.mean_s, found.min_s, found.max_s) == (
        4,
        2.5,
        2.5,
        1,
        4,
    )
    assert found.stddev_s == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
    assert summarize([1.0]).stddev_s == 0


@pytest.mark.parametrize(
    ("duration_s", "seen"),
    [(5.3e-6, 0.0195), (15e-6, 0.0067), (60e-6, 0.0022), (140e-6, 0.001), (5e-4, 0.0012)],
)
def test_the_gpu_prior_is_above_what_an_h200_showed_and_not_far(
    duration_s: float, seen: float
) -> None:
    assert seen <= prior(duration_s, "cuda").sigma <= 2 * seen


def test_a_cpu_is_expected_to_be_noisier_and_a_restless_sample_too() -> None:
    assert prior(1e-3, "cpu").sigma > 10 * prior(1e-3, "cuda").sigma
    assert prior(1e-3, "cuda", spread=0.5).sigma == pytest.approx(0.05)


def test_noise_is_learned_from_runs_and_the_prior_fades() -> None:
    start = Noise(0.01, 6.0, "prior")
    quiet = 0.001 * np.random.default_rng(1).standard_normal(60)
    found = learn(start, quiet, np.array([5.0]))
    assert found.degrees == MOST_DEGREES, "tails stay heavier than the number of runs says"
    assert 0.001 < found.sigma < 0.005
    assert learn(start, np.array([1.0])) == start
