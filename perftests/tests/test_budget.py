"""A session's time is shared out fairly, and a late or slow case still gets a sample."""

from __future__ import annotations

import pytest

from perftests.harness.budget import LEAST_S, Budget
from perftests.harness.stop import SESSION_BUDGET, TIME_CAP, Stopper, StopRule

NOISY = [1.0, 2.0] * 20


class Clock:
    """Shows what the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_case_gets_its_part_of_what_is_left_less_what_checks_take() -> None:
    clock = Clock()
    budget = Budget(10.0, 10, clock)
    assert budget.sample_s("cuda") == pytest.approx(1.0)
    clock.now += 0.55
    budget.spent(0.55, 0.15)
    assert budget.sample_s("cuda") == pytest.approx((10 - 0.55) / 9 - 0.4)


def test_one_slow_compilation_is_paid_by_all_and_not_expected_again() -> None:
    clock = Clock()
    budget = Budget(30.0, 12, clock)
    budget.sample_s("cuda")
    for total in (11.0, 0.5, 0.5):
        clock.now += total
        budget.spent(total, 0.25)
    assert budget.sample_s("cuda") == pytest.approx(18 / 9 - 0.25)


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_case_after_the_end_gets_the_least(kind: str) -> None:
    clock = Clock()
    budget = Budget(1.0, 2, clock)
    budget.sample_s(kind)
    clock.now += 5
    budget.spent(5.0, 1.0)
    assert budget.sample_s(kind) == LEAST_S[kind]


def test_more_cases_than_announced_do_no_harm() -> None:
    budget = Budget(1.0, 1, Clock())
    budget.sample_s("cpu")
    budget.spent(0.1, 0.1)
    budget.spent(0.1, 0.1)
    assert budget.sample_s("cpu") > 0


def test_a_sample_cut_by_the_budget_says_so() -> None:
    rule = StopRule(max_seconds=1.0, budget_seconds=0.1)
    assert Stopper(rule).decide(NOISY, 0.05) is None
    assert Stopper(rule).decide(NOISY, 0.2) == SESSION_BUDGET
    assert Stopper(rule).decide(NOISY, 1.0) == TIME_CAP


def test_the_budget_leaves_every_sample_a_few_measurements() -> None:
    rule = StopRule(max_seconds=1.0, budget_seconds=0.1)
    assert Stopper(rule).decide(NOISY[:6], 0.2) is None
    assert Stopper(rule).decide(NOISY[:7], 0.2) == SESSION_BUDGET
