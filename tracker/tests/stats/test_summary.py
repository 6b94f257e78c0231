"""What a sample says: held, to the bit, against NumPy's own way of asking."""

import numpy as np
import pytest

from tracker.stats.summary import IQR_TO_SD, log_median


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
