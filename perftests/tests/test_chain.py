"""What the chain does around its links: forms, first calls, budgets, a lost device. No GPU."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.budget import Budget
from perftests.harness.buffers import POISON_NAN, BufferSet
from perftests.harness.chain import measure
from perftests.harness.cpu import CpuDevice
from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests import workloads
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftests.harness.workload import Inputs


def session(budget: Budget | None = None, **settings: Any) -> Session:
    limits = {"max_seconds": 0.02, "max_samples": 8, "lock_seconds": 30.0}
    return Session(Settings(**limits | settings), budget)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"timing": False}, 67),
        ({"timing": True}, 5003),
        ({"timing": False, "profile": True}, 5003),
    ],
)
def test_only_a_correctness_run_takes_the_small_form(settings: dict[str, Any], size: int) -> None:
    seen: set[int] = set()

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.add(out.numel())
        workloads.relu_of_torch(inputs, out)

    workload = relu_workload(noted, small=lambda: relu_workload(noted, n=67))
    outcome = measure(workload, session(**settings))
    assert outcome.broken is None
    assert seen == {size}
    assert outcome.result["case"]["shape"] == [size]


def test_a_profiled_run_checks_before_the_marks() -> None:
    here = session(timing=False, profile=True)
    outcome = measure(relu_workload(workloads.does_nothing), here)
    assert outcome.broken is not None
    assert outcome.broken.link is Link.COMPARE


def test_every_case_is_taken_off_the_budget_broken_ones_too() -> None:
    budget = Budget(10.0, 4)
    here = session(budget)
    measure(relu_workload(), here)
    used = budget._used
    assert 0 < used < 1
    assert budget._done == 1
    measure(relu_workload(workloads.does_nothing), here)
    assert (budget._done, budget._used) == (2, used)


def test_a_first_call_is_split_and_later_ones_say_why_they_are_not() -> None:
    def split() -> Mapping[str, float | None]:
        return {"compile_s": 0.5, "load_s": None}

    here = session(timing=False)
    first = measure(relu_workload(first_call=split), here).result
    assert first["first_call"]["compile_s"] == 0.5
    assert first["first_call"]["launch_s"] > 0
    assert "does not split" in first["reasons"]["first_call.load_s"]
    again = measure(relu_workload(first_call=split), here).result
    assert set(again["first_call"].values()) == {None}
    assert again["reasons"]["first_call.launch_s"] == "this process had launched it before"
    other = measure(relu_workload(first_call=split, dtype=torch.float16), here).result
    assert other["first_call"]["compile_s"] == 0.5, "another dtype is another kernel"


def test_a_first_call_lasts_until_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuDevice, "synchronize", lambda _device: time.sleep(0.02))
    result = measure(relu_workload(), session(timing=False)).result
    assert result["first_call"]["launch_s"] >= 0.02


def test_a_first_call_that_cannot_compile_is_a_broken_launch() -> None:
    def broken() -> Mapping[str, float | None]:
        raise RuntimeError("nvrtc: error: identifier undefined\nand more")

    outcome = measure(relu_workload(first_call=broken), session())
    assert outcome.broken is not None
    assert str(outcome.broken) == "launch: RuntimeError: nvrtc: error: identifier undefined"


class Lost:
    """A device whose context is gone from the first launch that raises on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_lost = False
        monkeypatch.setattr(CpuDevice, "synchronize", lambda _device: self.wait())

    def wait(self) -> None:
        if self.is_lost:
            raise ChainBrokenError(Link.DEVICE, "an illegal memory access", sticky=True)

    def __call__(self, _inputs: Inputs, _out: torch.Tensor) -> None:
        self.is_lost = True
        raise RuntimeError("launch failed")


def test_a_launch_that_takes_the_device_with_it_is_told_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = measure(relu_workload(Lost(monkeypatch)), session())
    assert outcome.broken is not None
    assert (outcome.broken.link, outcome.broken.sticky) == (Link.DEVICE, True)
    assert outcome.result["status"] == "error"
    assert outcome.result["correctness"]["passed"] is None


def unordered(_device: CpuDevice, launch: Callable[[], object], buffers: BufferSet) -> torch.Tensor:
    """Return the output as a stream sees it that the work does not run on."""
    buffers.output.poison(POISON_NAN)
    seen = buffers.output_tensor.clone()
    launch()
    return seen


def test_work_outside_the_order_of_its_stream_is_refused_though_it_is_right_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuDevice, "ordered", unordered)
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert outcome.broken.link is Link.STREAM
    assert outcome.result["status"] == "incorrect"
    wrong = measure(relu_workload(workloads.drops_nan), session())
    assert wrong.broken is not None
    assert wrong.broken.link is Link.COMPARE


def test_an_error_of_the_harness_itself_is_raised_unless_the_device_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Lost(monkeypatch)

    class Odd:
        def __init__(self, *, lose: bool) -> None:
            self.lose = lose

        def __call__(self, *_: object) -> None:
            lost.is_lost = self.lose
            raise KeyError("a slip of ours")

    monkeypatch.setattr("perftests.harness.chain.settle", Odd(lose=False))
    with pytest.raises(KeyError, match="a slip of ours"):
        measure(relu_workload(), session())
    monkeypatch.setattr("perftests.harness.chain.settle", Odd(lose=True))
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert outcome.broken.sticky


def test_a_stop_key_leaves_the_lock_free() -> None:
    here = session()

    def stopped(inputs: Inputs, out: torch.Tensor) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(relu_workload(stopped), here)
    assert measure(relu_workload(), here).broken is None
