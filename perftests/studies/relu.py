"""The kernel that the studies of the harness time: torch's ReLU on fp32, at a size in MiB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from perftests.harness.workload import Workload

if TYPE_CHECKING:
    from perftests.harness.workload import Inputs

MIB = 1 << 20


def relu_of_torch(inputs: Inputs, out: torch.Tensor) -> None:
    """Write max(x, 0), without allocating."""
    torch.clamp_min(inputs[0], 0, out=out)


def relu_workload(mib: int, *, more: float = 0.0) -> Workload:
    """Return ReLU over `mib` MiB of fp32; `more` plants a slow-down by that share of more data."""
    n = round(mib * MIB / 4 * (1 + more))

    def make_inputs(seed: int) -> Inputs:
        generator = torch.Generator(device="cuda").manual_seed(seed)
        return (torch.randn(n, generator=generator, device="cuda"),)

    def reference(inputs: Inputs) -> torch.Tensor:
        wide = inputs[0].double()
        return torch.where(wide < 0, 0.0, wide)

    return Workload(
        kernel="relu",
        implementation="torch",
        launch=relu_of_torch,
        make_inputs=make_inputs,
        distribution="standard normal",
        reference=reference,
        output_shape=(n,),
        output_dtype=torch.float32,
        bytes_moved=8 * n,
        flop=n,
    )
