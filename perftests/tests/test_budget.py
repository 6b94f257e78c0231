"""A session's sampling time is shared out fairly, and no case starves."""

from __future__ import annotations

import pytest

from perftests.harness.budget import Budget
from perftests.harness.stop import SESSION_BUDGET, TIME_CAP, Stopper, StopRule

NOISY = [1.0, 2.0] * 20


def test_what_precise_cases_leave_over_goes_to_those_after_them() -> None:
    budget = Budget(10.0, 10)
    assert budget.sample_s() == pytest.approx(1.0)
    budget.spent(0.1)
    assert budget.sample_s() == pytest.approx(9.9 / 9)


def test_the_last_case_gets_as_much_as_the_first_however_long_all_sample() -> None:
    budget = Budget(24.0, 540)
    given = []
    for _ in range(540):
        given.append(budget.sample_s())
        budget.spent(given[-1])
    assert min(given) == pytest.approx(max(given)) == pytest.approx(24 / 540)


def test_cases_after_one_that_took_too_much_still_get_half_their_part() -> None:
    budget = Budget(1.0, 10)
    budget.spent(5.0)
    assert budget.sample_s() == pytest.approx(0.05)


def test_more_cases_than_announced_do_no_harm() -> None:
    budget = Budget(1.0, 1)
    budget.spent(0.1)
    budget.spent(0.1)
    assert budget.sample_s() > 0


def test_a_sample_cut_by_the_budget_says_so() -> None:
    rule = StopRule(max_seconds=1.0, budget_seconds=0.1)
    assert Stopper(rule).decide(NOISY, 0.05) is None
    assert Stopper(rule).decide(NOISY, 0.2) == SESSION_BUDGET
    assert Stopper(rule).decide(NOISY, 1.0) == TIME_CAP


def test_the_budget_leaves_every_sample_a_few_measurements() -> None:
    rule = StopRule(max_seconds=1.0, budget_seconds=0.1)
    assert Stopper(rule).decide(NOISY[:6], 0.2) is None
    assert Stopper(rule).decide(NOISY[:7], 0.2) == SESSION_BUDGET
