"""False discovery over many p-values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.stats.fdr import discoveries, threshold

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=50)


def test_the_worked_example_of_the_paper() -> None:
    # Benjamini and Hochberg (1995), section 4.1: 15 tests, four called at 5 %.
    published = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
        *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
    ]
    assert discoveries(published, 0.05).sum() == 4
    assert threshold(published, 0.05) == pytest.approx(0.05 * 4 / 15)


def test_nothing_tested_has_the_whole_rate() -> None:
    assert threshold([], 0.01) == 0.01
    assert discoveries([], 0.01).size == 0


@given(p_values, st.randoms())
def test_order_does_not_matter(values: list[float], rng: object) -> None:
    assert sorted(discoveries(values, 0.1)) == sorted(discoveries(values[::-1], 0.1))


@given(p_values)
def test_a_higher_rate_calls_no_less(values: list[float]) -> None:
    assert not np.any(discoveries(values, 0.01) & ~discoveries(values, 0.1))


def test_an_unchanged_suite_is_called_no_more_often_than_the_rate() -> None:
    rng = np.random.default_rng(2)
    called = [discoveries(list(rng.random(200)), 0.05).any() for _ in range(2000)]
    assert np.mean(called) <= 0.065
