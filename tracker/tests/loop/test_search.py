import numpy as np
import pytest

from tracker.loop.search import Level, Reading, Search, Spread


def run(
    count: int,
    culprit: int,
    *,
    step: float = 0.03,
    error: float = 0.002,
    seed: int = 0,
    broken: tuple[int, ...] = (),
    wanted: float = 0.95,
    limit: int = 40,
) -> tuple[Search, int]:
    """Bisect a made-up history; return the search and how many readings it took."""
    rng = np.random.default_rng([seed, count, culprit])
    search = Search(count, Level(step + error * rng.standard_normal() / 2, error / 2))
    for taken in range(limit):
        at = search.next()
        if search.best()[1] >= wanted or at is None:
            return search, taken
        if at in broken:
            search.skipped.add(at)
            continue
        against = search.last_good()
        shift = (step if against < culprit <= at else 0.0) + error * rng.standard_normal()
        search.readings.append(Reading(against, at, Level(shift, error)))
    return search, limit


@pytest.mark.parametrize("culprit", [1, 2, 7, 15, 16])
def test_a_clear_change_is_found_in_about_log2_readings(culprit: int) -> None:
    search, taken = run(16, culprit)
    assert search.best()[0] == (culprit,)
    assert taken <= 5


def test_one_commit_needs_no_reading() -> None:
    search, taken = run(1, 1)
    assert (search.best(), taken) == (((1,), 1.0), 0)


def test_a_noisy_change_is_measured_more_often_and_still_found() -> None:
    found = [run(32, 20, step=0.01, error=0.005, seed=seed) for seed in range(40)]
    decided = [search for search, taken in found if search.best()[1] >= 0.95]
    right = sum(search.best()[0] == (20,) for search in decided)
    assert len(decided) >= 36
    assert right >= 0.9 * len(decided)
    assert np.mean([taken for _, taken in found]) > 8


def test_the_stated_probability_is_honest() -> None:
    # Of the searches that stop at 80 %, at most a third is wrong.
    found = [run(16, 5, step=0.01, error=0.01, seed=s, wanted=0.8)[0] for s in range(40)]
    decided = [search for search in found if search.best()[1] >= 0.8]
    assert len(decided) > 25
    assert np.mean([search.best()[0] == (5,) for search in decided]) > 0.67


def test_commits_that_cannot_be_built_stay_together() -> None:
    search, _ = run(8, 4, broken=(3, 4))
    assert search.best()[0] == (3, 4, 5)
    assert search.best()[1] > 0.95
    assert search.next() is None or search.next() not in {3, 4}


def test_one_absurd_reading_rules_nothing_out() -> None:
    search = Search(8, Level(0.03, 0.001))
    search.readings.append(Reading(0, 4, Level(-0.5, 0.001)))
    assert np.all(search.probabilities() > 0.05)


def test_an_improvement_is_found_as_well() -> None:
    search, _ = run(16, 11, step=-0.04)
    assert search.best()[0] == (11,)


def test_two_changes_are_noticed() -> None:
    # Half of the change at 3, half at 6: the readings between fit neither level.
    search = Search(8, Level(0.04, 0.001))
    for at, shift in ((4, 0.02), (6, 0.04), (5, 0.02), (3, 0.02), (2, 0.0)):
        search.readings.append(Reading(0, at, Level(shift, 0.001)))
    assert {reading.at for reading in search.odd()} >= {4, 5} or {
        reading.at for reading in search.odd()
    } >= {3, 4, 5}


def test_a_clean_search_has_no_odd_reading() -> None:
    assert run(16, 9)[0].odd() == []


def test_time_left_shrinks_to_nothing() -> None:
    search = Search(16, Level(0.03, 0.002))
    assert 3 <= search.steps_left(0.95) <= 5
    assert run(16, 9)[0].steps_left(0.95) == 0


def test_the_last_good_commit_moves_up_and_skips_what_does_not_build() -> None:
    search = Search(8, Level(0.03, 0.001), skipped={4})
    assert search.last_good() == 0
    search.readings.append(Reading(0, 5, Level(0.0, 0.001)))
    assert search.last_good() == 5
    search.skipped.add(5)
    assert search.last_good() == 3


def test_what_all_processes_show_bounds_the_error_of_each_reading() -> None:
    search = Search(8, Level(0.03, 0.001), Spread(squares=0.0012, degrees=3))
    reading = Reading(0, 4, Level(0.03, 0.001), runs=2, spread=Spread(0.0004, 1))
    search.readings.append(reading)
    # A variance of 0.0016 / 4 = 0.02^2 a process; two processes a side.
    assert search.error(reading) == pytest.approx(0.02)
    quiet = Reading(0, 4, Level(0.03, 0.05), runs=2)
    assert search.error(quiet) == 0.05


def test_what_may_be_asked_next_is_what_is_asked_whichever_way_a_reading_goes() -> None:
    search = Search(16, Level(0.05, 0.002))
    ahead = search.ahead(0, 8, 0.95)
    assert ahead == [12, 4]
    for shift, position in zip((0.0, 0.05), ahead, strict=True):
        search.readings = [Reading(0, 8, Level(shift, 0.002))]
        assert search.next() == position
    assert Search(2, Level(0.05, 0.002)).ahead(0, 1, 0.95) == []
