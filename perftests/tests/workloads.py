"""Workloads for the harness's own tests: a ReLU of torch, and the saboteurs that must be refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.workload import Workload

if TYPE_CHECKING:
    from perftests.harness.workload import Inputs, Launch


def relu_of_torch(inputs: Inputs, out: torch.Tensor) -> None:
    torch.clamp_min(inputs[0], 0, out=out)


def relu_workload(
    launch: Launch = relu_of_torch,
    *,
    n: int = 5003,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    **changes: Any,
) -> Workload:
    """Return a ReLU of `n` elements computed by `launch`."""

    def make_inputs(seed: int) -> Inputs:
        generator = torch.Generator(device=device).manual_seed(seed)
        return (torch.randn(n, generator=generator, device=device).to(dtype),)

    def reference(inputs: Inputs) -> torch.Tensor:
        wide = inputs[0].double()
        return torch.where(wide < 0, 0.0, wide)

    workload = Workload(
        kernel="relu",
        implementation="under_test",
        launch=launch,
        make_inputs=make_inputs,
        reference=reference,
        output_shape=(n,),
        output_dtype=dtype,
        bytes_moved=2 * n * dtype.itemsize,
        flop=n,
    )
    return replace(workload, **changes)


def does_nothing(inputs: Inputs, out: torch.Tensor) -> None:
    """Leaves the output as it was."""


class CachesItsOutput:
    """Computes once, then hands the same answer out whatever comes in."""

    def __init__(self) -> None:
        self.kept: torch.Tensor | None = None

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        if self.kept is None:
            self.kept = torch.clamp_min(inputs[0], 0)
        out.copy_(self.kept)


class StopsWorking:
    """Works for a few calls, enough for the checks before the timed loop, and then no more."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.left -= 1
        if self.left >= 0:
            relu_of_torch(inputs, out)


def skips_its_tail(inputs: Inputs, out: torch.Tensor) -> None:
    """Handles whole vectors of four and forgets the rest."""
    whole = out.numel() // 4 * 4
    torch.clamp_min(inputs[0][:whole], 0, out=out[:whole])


def writes_out_of_bounds(inputs: Inputs, out: torch.Tensor) -> None:
    """Writes one element behind the output."""
    wide = out.as_strided((out.numel() + 1,), (1,))
    torch.clamp_min(inputs[0], 0, out=out)
    wide[-1:].fill_(7.0)


def writes_before_the_start(inputs: Inputs, out: torch.Tensor) -> None:
    """Writes one element before the output."""
    torch.clamp_min(inputs[0], 0, out=out)
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(7.0)


def drops_nan(inputs: Inputs, out: torch.Tensor) -> None:
    """Computes x > 0 ? x : 0, which turns NaN into 0."""
    out.copy_(torch.where(inputs[0] > 0, inputs[0], torch.zeros_like(inputs[0])))


class LeavesNanUnwritten:
    """Writes every element but those that should be NaN, which keep what was there before."""

    def __init__(self) -> None:
        self.calls = 0
        self.right: torch.Tensor | None = None
        self.is_nan: torch.Tensor | None = None

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.calls += 1
        if self.right is None or self.is_nan is None:
            self.right, self.is_nan = torch.empty_like(out), torch.empty_like(out, dtype=torch.bool)
        relu_of_torch(inputs, self.right)
        torch.ne(inputs[0], inputs[0], out=self.is_nan)
        torch.where(self.is_nan, out, self.right, out=out)


def allocates(inputs: Inputs, out: torch.Tensor) -> None:
    """Makes a temporary on every call."""
    out.copy_(torch.relu(inputs[0]))


class AllocatesLater:
    """Makes a temporary once the checks before the timed loop are over."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.left -= 1
        (relu_of_torch if self.left >= 0 else allocates)(inputs, out)


def fails_to_launch(inputs: Inputs, out: torch.Tensor) -> None:
    """Raises as a launch with an impossible configuration does."""
    raise RuntimeError("invalid configuration argument")


def changes_its_input(inputs: Inputs, out: torch.Tensor) -> None:
    """Works in place and copies."""
    inputs[0].clamp_(min=0)
    out.copy_(inputs[0])


class FailsLater:
    """Works until the timed loop is under way."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("too many resources requested for launch")
        relu_of_torch(inputs, out)
