"""What a sample says: held, to the bit, against NumPy's own way of asking."""

import numpy as np
import pytest
from scipy.special import betainc

from tracker.stats.summary import IQR_TO_SD, log_median, see
from tracker.tests.factory import make_result


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 40, 99, 100, 101, 1000])
@pytest.mark.parametrize("step_s", [0.0, 32e-9, 1e-6])
def test_quartiles_and_tick_are_numpy_s_to_the_bit(count: int, step_s: float) -> None:
    rng = np.random.default_rng(count)
    sample = 1e-4 * np.exp(rng.normal(0, 0.01, count))
    if step_s:
        sample = np.rint(sample / step_s) * step_s
    found, logs = log_median(sample.tolist()), np.sort(np.log(sample))
    q1, median, q3 = np.quantile(logs, (0.25, 0.5, 0.75))
    assert (found.value, found.spread) == (median, (q3 - q1) * IQR_TO_SD)
    distinct = np.unique(logs)
    readings_repeat = 2 <= distinct.size <= count / 2
    least = np.min(np.diff(distinct)) / np.sqrt(12.0) if readings_repeat else 0.0
    assert found.error >= least
    assert (found.count, found.error > 0) == (count, count > 1)


@pytest.mark.parametrize("bad", [0.0, -1e-6, float("nan"), float("inf")])
def test_a_sample_with_what_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite positive"):
        log_median([1e-4, bad, 1e-4])


def test_a_sample_says_the_same_alone_and_among_others_to_the_bit() -> None:
    rng = np.random.default_rng(7)
    rows = [
        tuple((1e-4 * np.exp(rng.normal(0, 0.02, count))).tolist())
        for count in (1, 2, 3, 17, 100, 100, 100, 101, 17, 1000, 1000)
    ]
    # Other objects of the same values, as another reading gives them.
    alone = [log_median(list(row)) for row in rows]
    see(rows)
    assert [log_median(row) for row in rows] == alone


def test_samples_of_more_measurements_than_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tracker.stats.summary._AT_ONCE", 250)
    rng = np.random.default_rng(8)
    rows = [tuple((1e-4 + 1e-6 * rng.random(count)).tolist()) for count in [100] * 7 + [300] * 2]
    alone = [log_median(list(row)) for row in rows]
    see(rows)
    assert [log_median(row) for row in rows] == alone


def test_a_sample_s_error_is_that_of_the_median_s_resamples() -> None:
    sample = np.sort(1e-4 * np.exp(np.random.default_rng(3).normal(0, 0.02, 100)))
    edges = betainc(50.5, 50.5, np.linspace(0, 1, 101))
    weights, logs = np.diff(edges), np.log(sample)
    variance = weights @ (logs - weights @ logs) ** 2
    assert log_median(sample.tolist()).error == pytest.approx(float(np.sqrt(variance)), rel=1e-12)


def test_more_samples_than_are_remembered_are_looked_at_again() -> None:
    rows = [(1e-4 + number * 1e-9, 2e-4) for number in range(5000)]
    see(rows)
    expected = [float(np.log(row).mean()) for row in rows]
    assert [log_median(row).value for row in rows] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("sample", "timed"),
    [
        ((1e-4, 2e-4), True),
        ((1e308, 1e308), True),
        ((), False),
        ((1e-4, 0.0), False),
        ((1e-4, -1e-4), False),
        ((1e-4, float("nan")), False),
        ((float("nan"), 1e-4), False),
        ((1e-4, float("inf")), False),
    ],
)
def test_a_result_is_timed_when_each_measurement_is_a_positive_time(
    sample: tuple[float, ...], timed: bool
) -> None:
    assert make_result(sample=(), measurements_s=sample).timed is timed
