"""Every statistic on a known list."""

from __future__ import annotations

import math

import pytest

from perftests.harness.summary import summarise


def test_each_statistic_of_a_known_list() -> None:
    found = summarise([4.0, 1.0, 2.0, 3.0, 10.0])
    assert found == {
        "count": 5,
        "median_s": 3.0,
        "mean_s": 4.0,
        "min_s": 1.0,
        "max_s": 10.0,
        "q1_s": 2.0,
        "q3_s": 4.0,
        "stddev_s": pytest.approx(math.sqrt((9 + 4 + 1 + 0 + 36) / 4)),
    }


def test_one_measurement_has_no_spread() -> None:
    assert summarise([2.0])["stddev_s"] == 0.0


@pytest.mark.parametrize("sample", [[], [0.0], [-1.0], [float("nan")], [1.0, float("inf")]])
def test_what_is_no_time_is_refused(sample: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot summarise"):
        summarise(sample)
