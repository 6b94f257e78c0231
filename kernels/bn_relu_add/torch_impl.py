"""Batch norm of inference, residual and ReLU as torch has it: eager, and to be compiled."""

import torch

from kernels.bn_relu_add.reference import channel_view


def bn_relu_add(
    x: torch.Tensor,
    residual: torch.Tensor,
    scale: torch.Tensor,
    shift: torch.Tensor,
    *,
    out: torch.Tensor,
    layout: str,
) -> None:
    """Write max(x * scale + shift + residual, 0) to `out`, the normalised value rounded between."""
    # The first step would overwrite a residual that is the output.
    normalised = torch.empty_like(out) if residual.data_ptr() == out.data_ptr() else out
    torch.addcmul(channel_view(shift, layout), x, channel_view(scale, layout), out=normalised)
    torch.add(normalised, residual, out=out).clamp_min_(0)


def bn_relu_add_fused(
    x: torch.Tensor,
    residual: torch.Tensor,
    scale: torch.Tensor,
    shift: torch.Tensor,
    *,
    out: torch.Tensor,
    layout: str,
) -> None:
    """Write the same in one expression in fp32, which a compiler makes one kernel of."""
    normalised = x.float() * channel_view(scale, layout) + channel_view(shift, layout)
    out.copy_(torch.clamp_min(normalised + residual, 0))
