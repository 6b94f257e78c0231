"""Levels of a series: what is searched together, and what a change point means."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tracker.levels import Course, Detector, baseline, drift, steps, steps_of, trusted


@dataclass(frozen=True)
class Point:
    index: int
    effect: float = -0.05
    p_value: float = 1e-9


def at(*places: int) -> Detector:
    """Return a detector that finds these places in every series long enough to have them."""

    def detect(values: Sequence[float]) -> list[Point]:
        return [Point(place) for place in places if place < len(values)]

    return detect


def giving(point: Point) -> Detector:
    """Return a detector that finds this point in every series."""

    def detect(values: Sequence[float]) -> list[Point]:
        return [point]

    return detect


def course(bandwidth: Sequence[float], **other: Sequence[str]) -> Course:
    rates = np.array(bandwidth, dtype=np.float64)
    count = len(rates)
    return Course(
        bandwidth=rates,
        copy_fraction=rates / 4.1e12,
        environment=other.get("environment", ["e"] * count),
        device=other.get("device", ["d"] * count),
        trusted=trusted(np.array(other.get("status", ["ok"] * count)), np.zeros(count, bool)),
    )


def test_a_step_has_both_levels_and_its_size() -> None:
    (step,) = steps(course([4e12] * 5 + [3.8e12] * 5), detect=at(5))
    assert (step.index, step.previous) == (5, 4)
    assert step.effect == pytest.approx(-0.05)
    assert (step.before, step.after) == (4e12, 3.8e12)
    assert step.lasting


def test_a_change_that_was_undone_does_not_last() -> None:
    down, up = steps(course([4.0] * 4 + [3.0] * 4 + [4.0] * 4), detect=at(4, 8))
    assert not down.lasting
    assert up.lasting


def test_a_half_recovery_still_lasts() -> None:
    first, _ = steps(course([4.0] * 4 + [3.0] * 4 + [3.4] * 4), detect=at(4, 8))
    assert first.lasting


def test_results_that_are_not_trusted_are_left_out_and_indices_stay() -> None:
    status = ["ok"] * 3 + ["incorrect"] + ["noisy"] * 2 + ["ok"] * 4
    rates = [4.0] * 3 + [np.nan] + [4.0] * 2 + [3.0] * 4
    (step,) = steps(course(rates, status=status), detect=at(5))
    assert (step.index, step.previous) == (6, 5)


def test_environments_are_searched_apart() -> None:
    both = course([4.0] * 4 + [3.0] * 4, environment=["a"] * 4 + ["b"] * 4)
    assert steps(both, detect=at(4)) == []


def test_several_boards_are_searched_by_the_fraction_of_copy() -> None:
    rates = np.array([4.0e12] * 5 + [3.96e12] * 5)
    boards = Course(rates, np.full(10, 0.97), ["e"] * 10, ["a"] * 5 + ["b"] * 5, np.ones(10, bool))
    (step,) = steps(boards, detect=at(5))
    assert step.effect == pytest.approx(0.0)


def test_short_series_have_no_level_to_leave() -> None:
    assert steps(course([4.0, 4.0, 3.0]), detect=at(2)) == []


def test_doubtful_and_tiny_changes_are_left_out() -> None:
    rates = course([4.0] * 5 + [3.8] * 5)
    for point in (Point(5, p_value=0.01), Point(5, effect=-0.001)):
        assert steps(rates, detect=giving(point)) == []


def test_the_baseline_is_the_median_of_each_level() -> None:
    status = ["ok"] * 4 + ["error"] + ["ok"] * 5
    whole = course([4.0, 4.1, 4.0, 3.9, np.nan, 3.0, 3.1, 3.0, 2.9, 3.0], status=status)
    level = baseline(whole, steps(whole, detect=at(4)), whole.bandwidth)
    assert level[:4].tolist() == [4.0] * 4
    assert np.isnan(level[4])
    assert level[5:].tolist() == [3.0] * 5


def noisy(levels: np.ndarray, seed: int = 3) -> np.ndarray:
    found: np.ndarray = levels * np.random.default_rng(seed).normal(1, 0.002, levels.size)
    return found


def test_a_drift_is_no_step() -> None:
    slow = course(noisy(np.linspace(4.0, 3.8, 60)).tolist())
    assert steps(slow) == []
    assert drift(slow, []) == pytest.approx(-0.05, abs=0.006)


def test_a_step_is_no_drift_and_a_level_neither() -> None:
    stepped = course(noisy(np.repeat([4.0, 3.8], 30)).tolist())
    assert drift(stepped, steps(stepped)) is None
    assert drift(course(noisy(np.full(60, 4.0)).tolist()), []) is None
    assert drift(course([]), []) is None


def test_a_drift_in_an_older_environment_is_over() -> None:
    rates = [*noisy(np.linspace(4.0, 3.8, 60)), *noisy(np.full(40, 3.9))]
    assert drift(course(rates, environment=["a"] * 60 + ["b"] * 40), []) is None


def test_many_series_at_once_have_the_steps_of_each_alone() -> None:
    several = [
        course(noisy(np.repeat([4.0, 4.0 * factor], [20 + n, 30]), seed=n).tolist())
        for n, factor in enumerate([1.0, 0.97, 1.0, 1.05, 0.9, 1.0])
    ]
    found = steps_of(several)
    assert found == [steps(one) for one in several]
    assert [len(some) for some in found] == [0, 1, 0, 1, 1, 0]
    assert steps_of([]) == []


def test_a_shared_device_and_a_faulty_result_do_not_count() -> None:
    status, shared = np.array(["ok", "noisy", "incorrect", "ok"]), np.array([False] * 3 + [True])
    assert trusted(status, shared).tolist() == [True, True, False, False]
