"""Which outputs are compared with the reference: each that has other bits than a right one had."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest

from perftests.harness import settle
from perftests.harness.chain import measure
from perftests.harness.compare import Comparison, compare
from perftests.harness.cpu import CpuDevice
from perftests.harness.errors import Link
from perftests.tests import workloads
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    import torch

    from perftests.harness.order import Look
    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Comparison]:
    """What comparisons with the reference found."""
    found: list[Comparison] = []

    def noted(*given: Any, **more: Any) -> Comparison:
        found.append(compare(*given, **more))
        return found[-1]

    monkeypatch.setattr(settle, "compare", noted)
    return found


class Unsteady:
    """A launch whose output has other bits each time, `beyond` from call number `after` on."""

    def __init__(self, after: int = 1 << 30, beyond: float = 0.0) -> None:
        self.calls, self.after, self.beyond = count(), after, beyond

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        call = next(self.calls)
        out[7] += 1e-6 * call + (self.beyond if call >= self.after else 0.0)


@pytest.mark.parametrize("timing", [True, False])
def test_an_output_is_compared_once_for_each_of_both_inputs(
    timing: bool, compared: list[Comparison], quick_session: Session, check_session: Session
) -> None:
    outcome = measure(relu_workload(), quick_session if timing else check_session)
    assert outcome.broken is None
    assert len(compared) == 2
    assert outcome.result["correctness"]["checked"]


def test_an_output_with_other_bits_is_compared_each_time(
    compared: list[Comparison], quick_session: Session
) -> None:
    """After the first look, after the timed loop, of fresh inputs."""
    outcome = measure(relu_workload(Unsteady(), bound=lambda _: 1e-2), quick_session)
    assert outcome.broken is None
    assert len(compared) >= 3
    assert outcome.result["correctness"]["worst_error"] == max(one.worst_error for one in compared)


def test_an_output_that_turns_wrong_later_is_refused(
    compared: list[Comparison], quick_session: Session
) -> None:
    unsteady = Unsteady(after=2, beyond=1.0)
    outcome = measure(relu_workload(unsteady, bound=lambda _: 1e-2), quick_session)
    assert outcome.broken is not None
    assert outcome.broken.link is Link.TIMED
    assert outcome.seconds == []
    assert [one.passed for one in compared] == [True] * (len(compared) - 1) + [False]


def test_no_right_output_is_kept_while_fresh_inputs_and_their_reference_are_made(
    monkeypatch: pytest.MonkeyPatch, check_session: Session
) -> None:
    """There the most memory is taken: a large case would no longer fit."""
    outputs: list[ref[torch.Tensor]] = []
    left: list[list[bool]] = []
    usual = CpuDevice.ordered

    def noted(*given: Any) -> Look:
        seen = usual(*given)
        outputs.append(ref(seen.output))
        return seen

    def make_inputs(seed: int) -> Inputs:
        left.append([output() is not None for output in outputs])
        return workload.make_inputs(seed)

    monkeypatch.setattr(CpuDevice, "ordered", noted)
    workload = relu_workload()
    outcome = measure(replace(workload, make_inputs=make_inputs), check_session)
    assert outcome.broken is None
    assert left == [[], [False]]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [4099, 1 << 22])
def test_on_a_gpu_an_output_is_compared_once_for_each_of_both_inputs(
    n: int, compared: list[Comparison], quick_session: Session, gpu: str
) -> None:
    outcome = measure(relu_workload(n=n, device=gpu), quick_session)
    assert outcome.broken is None
    assert len(compared) == 2
