"""Random turns: each candidate's time comes from its own launches, whatever stands beside it."""

from dataclasses import dataclass, field

import pytest

from perftests.harness.sampling import Batch
from perftests.studies.turns import MOST, midmean, turned


@dataclass
class Steady:
    """A runner whose launches take `seconds`, and longer right after another one's turn."""

    name: str
    seconds: float
    log: list[str] = field(default_factory=list)
    timer: str = "none"
    rounds: int = 1

    def batch(self, count: int) -> Batch:
        self.log.append(self.name)
        return Batch([self.seconds + 1e-9 * (i % 3) for i in range(count)])

    def rest(self, count: int) -> None:
        raise AssertionError

    def once(self) -> None:
        raise AssertionError


def test_the_middle_half_is_averaged() -> None:
    assert midmean([1.0, 2.0, 3.0, 100.0]) == 2.5
    assert midmean([5.0]) == 5.0
    # Between two steps of a timer a median would be one of them.
    assert midmean([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]) == 1.75


def test_every_round_has_every_candidate_once_in_an_order_of_its_own() -> None:
    log: list[str] = []
    runners = {name: Steady(name, 1e-6 * (i + 1), log) for i, name in enumerate("abcd")}
    found = turned(runners, 0.0, rounds=6)
    turns = log[8:]
    orders = ["".join(turns[k : k + 4]) for k in range(0, len(turns), 4)]
    assert all(sorted(order) == list("abcd") for order in orders)
    assert len(set(orders)) > 2
    assert [round(t.seconds * 1e6, 2) for t in found.values()] == [1.0, 2.0, 3.0, 4.0]
    assert all(t.error_s == pytest.approx(0.0) for t in found.values())


def test_a_turn_has_no_more_launches_than_the_most() -> None:
    log: list[int] = []

    class Counting(Steady):
        def batch(self, count: int) -> Batch:
            log.append(count)
            return super().batch(count)

    turned({"a": Counting("a", 1e-6)}, 1e9, rounds=2)
    assert max(log) == MOST
