"""A pytest plugin that plants losses: every kernel does a share more work than its case says.

    pytest -p perftests.plugin -p perftests.studies.planted --planted-loss=0.02 --benchmark ...

A loss of 2 % in bandwidth is 2.04 % more time for the same bytes. The inputs and outputs grow by
that share and `bytes_moved` stays, so the device really works longer. The code's fingerprint is
changed with it, as a commit that made a kernel slower would change it. Cases that move less than
`--planted-least-mib` are left out.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING

import pytest

from kernels.cost import cost
from perftests import suite

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from kernels.cases import Case
    from kernels.implementation import Implementation
    from perftests.harness.workload import Workload

MIB = 1 << 20
_GRAIN = 1 << 12
"""Elements to which the length of a flat case is rounded: its tail and alignment stay."""
_NEAR = 0.004
"""How far off the first axis of several may be, as a share of all elements."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the flags."""
    group = parser.getgroup("bandwatch")
    group.addoption("--planted-loss", type=float, default=0.0, metavar="SHARE")
    group.addoption("--planted-least-mib", type=float, default=64.0, metavar="MIB")


def pytest_configure(config: pytest.Config) -> None:
    """Let the suite make slower workloads from here on."""
    loss = config.getoption("--planted-loss")
    if not 0 <= loss < 1:
        raise pytest.UsageError(f"--planted-loss: {loss} is no share from 0 to below 1")
    if loss:
        vars(suite)["workload"] = slower(suite.workload, loss)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are too small."""
    least = config.getoption("--planted-least-mib") * MIB
    kept = [item for item in items if _bytes(item) >= least]
    config.hook.pytest_deselected(items=[item for item in items if _bytes(item) < least])
    items[:] = kept


def _bytes(item: pytest.Item) -> int:
    problem = suite.problem_of(item)
    return cost(problem.case).bytes_moved if problem else 0


def slower(
    make: Callable[[Implementation, Case, torch.device], Workload], loss: float
) -> Callable[[Implementation, Case, torch.device], Workload]:
    """Return the maker of workloads that keep their case's name and bytes and work on more."""

    def planted(implementation: Implementation, case: Case, device: torch.device) -> Workload:
        made = make(implementation, grown(case, 1 / (1 - loss)), device)
        price = cost(case)
        code = made.fingerprint and sha256(f"{made.fingerprint} {loss}".encode()).hexdigest()
        return replace(
            made,
            shape=case.shape,
            bytes_moved=price.bytes_moved,
            flop=price.flop,
            fingerprint=code,
            small=None,
        )

    return planted


def grown(case: Case, factor: float) -> Case:
    """Return the case with so many times the elements, as nearly as one of its axes allows.

    The first axis is taken where it comes near: libraries choose other kernels for other images.
    The last axis of several stays: it holds a pixel's or a position's channels.
    """
    if len(case.shape) == 1:
        length = case.shape[0]
        more = round(length * (factor - 1) / _GRAIN) * _GRAIN or round(length * (factor - 1))
        return replace(case, shape=(length + more,))
    shapes = [
        (*case.shape[:axis], round(size * factor), *case.shape[axis + 1 :])
        for axis, size in enumerate(case.shape[:-1])
    ]
    wanted = prod(case.shape) * factor
    first = shapes[0]
    near = first != case.shape and abs(prod(first) / wanted - 1) <= _NEAR
    shape = first if near else min(shapes, key=lambda shape: abs(prod(shape) - wanted))
    return replace(case, shape=shape)
