"""The history rule on whole series."""

from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.stats.change_point import change_points, changes_in, history, revise


def series(*levels: tuple[float, int], sigma: float = 1.0, seed: int = 1) -> list[float]:
    rng = np.random.default_rng(seed)
    return [v for level, n in levels for v in level + sigma * rng.standard_normal(n)]


def test_one_step_is_found_where_it_is() -> None:
    (change,) = change_points(series((100, 50), (95, 50)))
    assert change.index == 50
    assert change.before == pytest.approx(100, abs=0.5)
    assert change.after == pytest.approx(95, abs=0.5)
    assert change.effect == pytest.approx(-0.05, abs=0.01)
    assert change.p_value < 1e-6


def test_noise_alone_has_no_change_point() -> None:
    assert change_points(series((100, 100))) == []


def test_a_dip_is_found_at_both_ends_and_a_short_one_too() -> None:
    found = change_points(series((100, 40), (95, 6), (100, 40), (92, 20), (100, 30)))
    assert [c.index for c in found] == [40, 46, 86, 106]


def test_single_and_double_spikes_and_bad_last_runs_are_no_steps() -> None:
    values = series((100, 60))
    values[20] = 85
    values[40] = values[41] = 88
    assert change_points(values) == []
    for bad in (1, 2):
        assert change_points([*values, *[85.0] * bad]) == []
    assert [c.index for c in change_points([*values, 85.1, 85.5, 84.9])] == [60]


def test_a_spike_does_not_hide_a_step() -> None:
    values = series((100, 50), (97, 50))
    values[30] = values[70] = 60
    (change,) = change_points(values)
    assert abs(change.index - 50) <= 2


@pytest.mark.parametrize("hole", [None, nan, inf, -inf])
def test_missing_values_are_skipped_with_a_warning_and_hide_nothing(hole: float | None) -> None:
    values: list[float | None] = [*series((100, 50), (95, 50))]
    values[20] = values[50] = hole
    with pytest.warns(RuntimeWarning, match="2 of 100 values"):
        (change,) = change_points(values)
    assert change.index == 51
    assert history(values).skipped == (20, 50)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0, 2.0], [nan] * 9 + [1.0], [5.0] * 50])
def test_short_empty_and_constant_series_have_none(values: list[float]) -> None:
    assert list(history(values).changes) == []


def test_a_step_without_noise_is_found_unless_no_timer_resolves_it() -> None:
    assert [c.index for c in change_points([100.0] * 10 + [99.0] * 10)] == [10]
    assert change_points([100.0] * 10 + [99.9999] * 10) == []


def test_a_steady_drift_is_told_as_a_drift_and_not_as_stairs() -> None:
    values = [v - 0.05 * i for i, v in enumerate(series((100, 100)))]
    found = history(values)
    assert found.changes == ()
    assert found.drift is not None
    assert found.drift.effect == pytest.approx(-0.05, abs=0.015)


def test_steps_are_not_told_as_a_drift() -> None:
    assert history(series((100, 30), (97, 40), (94, 30))).drift is None


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 1e9), st.integers(10, 60))
def test_unit_and_mirror_do_not_move_a_change(seed: int, unit: float, at: int) -> None:
    values = series((100, at), (95, 70 - at), seed=seed)
    places = [c.index for c in change_points(values)]
    assert [c.index for c in change_points([v * unit for v in values])] == places
    assert [c.index for c in change_points([200 - v for v in values])] == places


def test_a_change_stays_when_runs_are_added() -> None:
    values = series((100, 40), (95, 40), seed=3)
    told = [change_points(values[:n]) for n in range(46, 81)]
    assert {len(t) for t in told} == {1}
    assert {t[0].index for t in told} == {40}


def test_a_revision_tells_added_kept_and_retracted() -> None:
    one = change_points(series((100, 30), (95, 30)))
    two = change_points(series((100, 31), (95, 29), (100, 30)))
    revision = revise(one, two)
    assert [c.index for c in revision.kept] == [31]
    assert [c.index for c in revision.added] == [60]
    assert revision.retracted == ()
    assert revise(two, []).retracted == tuple(two)


def test_ten_thousand_runs_with_many_steps_are_all_found() -> None:
    levels = [(100.0 - 5 * (i % 2), 100) for i in range(100)]
    found = change_points(series(*levels))
    hits = sum(any(abs(c.index - 100 * k) <= 2 for c in found) for k in range(1, 100))
    assert hits >= 98
    assert len(found) <= 101


def test_neighbouring_changes_never_cross_where_spikes_stand_between_them() -> None:
    rng = np.random.default_rng(9)
    for _ in range(300):
        values = 100 + rng.standard_normal(60)
        values[25:29] -= 6
        values[rng.integers(20, 34, 3)] += rng.choice([-25.0, 25.0], 3)
        found = [change.index for change in history(list(values)).changes]
        assert all(b > a for a, b in pairwise(found))


def test_the_quick_way_finds_the_changes_of_the_history() -> None:
    rng = np.random.default_rng(8)
    found = 0
    for number in range(60):
        series = 100 * np.exp(0.004 * rng.standard_normal(60))
        series[30:] *= 1 + 0.01 * (number % 3)
        series *= 1 + np.arange(60) * (0.001 if number % 5 == 4 else 0)
        changes = changes_in(series)
        assert changes == history(series.tolist()).changes
        found += len(changes)
    assert found > 20
    assert changes_in(series[:5]) == ()
