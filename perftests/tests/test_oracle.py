"""Truths are made once for like workloads, and never lent to unlike ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch

from perftests.harness.oracle import Oracle
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from perftests.harness.workload import Inputs, Workload


def counted(key: str | None, n: int, made: Counter[tuple[int, int]]) -> Workload:
    def make_inputs(seed: int) -> Inputs:
        made[n, seed] += 1
        return (torch.full((n,), float(seed)),)

    return relu_workload(n=n, inputs_key=key, make_inputs=make_inputs, bound=0.25)


def test_workloads_of_one_key_share_a_truth_by_seed() -> None:
    oracle, made = Oracle(), Counter[tuple[int, int]]()
    first = oracle.truth(counted("a", 9, made), 1)
    assert oracle.truth(counted("a", 9, made), 1) is first
    assert oracle.truth(counted("a", 9, made), 2) is not first
    assert made == {(9, 1): 1, (9, 2): 1}
    assert first.bound == 0.25
    assert torch.equal(
        first.expected.nan_to_num(), torch.relu(first.values[0]).double().nan_to_num()
    )


def test_another_key_has_a_truth_of_its_own() -> None:
    oracle, made = Oracle(), Counter[tuple[int, int]]()
    oracle.truth(counted("a", 9, made), 1)
    assert oracle.truth(counted("b", 17, made), 1).expected.shape == (17,)
    assert oracle.truth(counted("a", 9, made), 1).expected.shape == (9,)
    assert made == {(9, 1): 2, (17, 1): 1}, "only the last key's are kept: large cases fill memory"


def test_without_a_key_nothing_is_shared() -> None:
    oracle, made = Oracle(), Counter[tuple[int, int]]()
    for n in (9, 17, 9):
        assert oracle.truth(counted(None, n, made), 1).expected.shape == (n,)
    assert made == {(9, 1): 2, (17, 1): 1}
    oracle.truth(counted("a", 9, made), 1)
    assert oracle.truth(counted(None, 5, made), 1).expected.shape == (5,)


def test_specials_are_planted_where_the_workload_has_them() -> None:
    made = Counter[tuple[int, int]]()
    planted = Oracle().truth(counted(None, 64, made), 3)
    assert planted.values[0].isnan().any()
    plain = Oracle().truth(relu_workload(n=64, specials=False), 3)
    assert plain.values[0].isfinite().all()
