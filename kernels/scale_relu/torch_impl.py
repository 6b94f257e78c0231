"""Scale and ReLU as torch has it: two operations, one after the other in the output."""

import torch


def scale_relu(x: torch.Tensor, *, out: torch.Tensor, scale: float) -> None:
    """Write max(x * scale, 0) to `out`."""
    torch.mul(x, scale, out=out)
    out.clamp_min_(0)
