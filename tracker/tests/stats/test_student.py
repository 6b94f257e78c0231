"""The distributions that every command asks for agree with SciPy's, which takes long to load."""

import subprocess
import sys
from math import atan, inf, pi

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtrit

from tracker.stats.student import normal_tail, quantile, symmetric_beta, tail

EXACT = 1e-12
DEGREES = (0.7, 1, 2, 4.3, 5, 7.37, 12, 19.99, 40, 41, 99, 1000, 9999, 10_001, 1e6, 1e9)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_tail_of_t_is_scipys(degrees: float) -> None:
    # To a chance of 1e-250 and below: where it is that small, its own digits still count.
    for t in (0.0, 0.01, 0.1, *np.linspace(0.5, 12, 47).tolist(), 30.0, 100.0):
        expected = float(stats.t.sf(t, degrees))
        if expected > 1e-250:
            assert tail(t, degrees) == pytest.approx(expected, rel=EXACT, abs=0)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_quantile_of_t_is_scipys(degrees: float) -> None:
    for chance in (0.5, 0.4999, 0.2, 0.025, 0.005, 0.0005, 1e-5, 1e-8, 1e-12):
        expected = float(stats.t.isf(chance, degrees))
        assert quantile(chance, degrees) == pytest.approx(expected, rel=EXACT, abs=1e-15)
    for confidence in (0.95, 0.99, 0.999, 0.9999):
        reach = float(stdtrit(degrees, (1 + confidence) / 2))
        assert quantile(1 - (1 + confidence) / 2, degrees) == pytest.approx(reach, rel=EXACT)


def test_near_zero_the_tail_of_one_degree_is_the_arctangents() -> None:
    for t in (1e-12, 1e-9, 1e-5):  # here SciPy says 0.5
        assert 0.5 - tail(t, 1) == pytest.approx(atan(t) / pi, rel=1e-4)


def test_what_is_infinitely_far_has_no_chance() -> None:
    assert tail(inf, 5) == 0
    assert tail(1e200, 5) == 0
    assert quantile(0.0, 5) == inf


def test_the_tail_of_a_normal_value_is_scipys() -> None:
    for score in (-40.0, -3.0, -0.1, 0.0, 0.1, 3.0, 8.0, 37.0):
        assert normal_tail(score) == pytest.approx(float(stats.norm.sf(score)), rel=EXACT, abs=0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 29, 38, 39, 40, 99, 100, 101, 1000, 5001, 20_000])
def test_the_symmetric_beta_is_scipys(count: int) -> None:
    shares = np.linspace(0.0, 1.0, count + 1)
    half = (count + 1) / 2
    expected = stats.beta.cdf(shares, half, half)
    found = symmetric_beta(half, shares)
    assert found == pytest.approx(expected, rel=0, abs=EXACT)
    # Where it is small, to its own digits.
    small = (expected > 1e-30) & (expected < 0.5)
    assert found[small] == pytest.approx(expected[small], rel=EXACT, abs=0)


@pytest.mark.parametrize("command", ["check", "compare"])
def test_no_command_that_judges_loads_scipy_before_it_needs_it(command: str) -> None:
    asked = f"import sys, tracker.cli.{command}; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
