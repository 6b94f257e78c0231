from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tracker.loop.fresh import Measured
from tracker.loop.turns import Budget, Name, OutOfTimeError, Pairs, order, take_turns
from tracker.record import Envelope
from tracker.tests.loop.fake import CASES, RELU, Clock
from tracker.tests.sides import BOARD, H200, make_result


def envelope() -> Envelope:
    result = make_result(case=CASES[RELU], center_s=1e-4)
    return Envelope(H200, BOARD, replace(result, test=RELU))


def positions(pairs: int) -> dict[str, list[int]]:
    sequence = [name for number in range(pairs) for name in order(number)]
    return {
        "base": [i for i, name in enumerate(sequence) if name == "base"],
        "head": [i for i, name in enumerate(sequence) if name == "head"],
    }


def test_the_first_block_is_abba() -> None:
    assert [order(0), order(1)] == [("base", "head"), ("head", "base")]


@pytest.mark.parametrize(("pairs", "power"), [(2, 1), (4, 2), (8, 3)])
def test_a_drift_of_that_power_hits_both_sides_alike(pairs: int, power: int) -> None:
    # The sums of powers below the order of a Thue-Morse sequence are equal (Prouhet 1851).
    place = positions(pairs)
    for exponent in range(power + 1):
        base, head = (np.power(place[name], exponent).sum() for name in ("base", "head"))
        assert base == head


class Recorder:
    def __init__(self) -> None:
        self.turns: list[tuple[Name, tuple[str, ...] | None]] = []

    def __call__(
        self, names: Sequence[Name], tests: tuple[str, ...] | None
    ) -> Generator[Measured, None, None]:
        for name in names:
            self.turns.append((name, tests))
            yield Measured((envelope(),))


def test_a_settled_suite_ends_after_one_balanced_block() -> None:
    turn = Recorder()
    pairs = take_turns(turn, lambda _: (), tests=None, budget=Budget(pairs=10), clock=Clock())
    assert pairs.rounds == 2
    assert [name for name, _ in turn.turns] == ["base", "head", "head", "base"]


def test_only_open_tests_are_measured_again() -> None:
    turn = Recorder()
    take_turns(turn, lambda _: (RELU,), tests=None, budget=Budget(pairs=4), clock=Clock())
    assert [tests for _, tests in turn.turns] == [None] * 4 + [(RELU,)] * 4


def test_the_time_budget_ends_the_turns_before_it_is_overdrawn() -> None:
    clock = Clock()
    pairs = take_turns(
        Recorder(), lambda _: (RELU,), tests=None, budget=Budget(20, 5.0), clock=clock
    )
    # The clock moves by 1 s a reading: two pairs at its second reading.
    assert 2 <= pairs.rounds < 20
    assert clock.now_s <= 7


def test_at_least_one_block_is_measured_whatever_the_budget() -> None:
    pairs = take_turns(
        Recorder(), lambda _: (RELU,), tests=None, budget=Budget(20, 0.001), clock=Clock(60)
    )
    assert pairs.rounds == 2


def test_a_limit_that_does_not_last_for_a_block_says_how_far_it_came() -> None:
    turn = Recorder()
    with pytest.raises(OutOfTimeError, match="after 2 of the first 4 processes"):
        take_turns(
            turn,
            lambda _: (RELU,),
            tests=None,
            budget=Budget(20, limit_s=3.5),
            clock=Clock(1.0),
        )
    assert len(turn.turns) == 2


def test_turns_end_where_they_are_told_to() -> None:
    budget = Budget(8, until=4)
    pairs = take_turns(Recorder(), lambda _: (RELU,), tests=None, budget=budget, clock=Clock())
    assert pairs.rounds == 4
    assert budget.looks == 4


def test_problems_and_absent_tests_are_kept() -> None:
    pairs = Pairs()
    pairs.take("base", Measured(absent=("x",), problems=("broken record",)))
    pairs.take("base", Measured(absent=("x",), problems=("broken record",)))
    assert pairs.absent["base"] == {"x"}
    assert pairs.problems == ["broken record"]
    assert pairs.both() == ()
