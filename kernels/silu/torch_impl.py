"""SiLU as torch has it."""

import torch


def silu(x: torch.Tensor, *, out: torch.Tensor) -> None:
    """Write x * sigmoid(x) to `out`."""
    torch.ops.aten.silu.out(x, out=out)
