"""What batch norm (inference), residual and ReLU means, folded, and how far fp32 may be from it."""

import torch

from kernels.cases import Case
from kernels.tolerances import half_ulp


def channel_view(values: torch.Tensor, layout: str) -> torch.Tensor:
    """Return per-channel values [C] shaped to broadcast over a batch of `layout`."""
    return values if layout == "nhwc" else values.view(1, -1, 1, 1)


def reference(
    x: torch.Tensor, residual: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor, layout: str
) -> torch.Tensor:
    """Return max(x * scale[c] + shift[c] + residual, 0) in float64; NaN stays NaN, -0 becomes 0."""
    s, t = channel_view(scale.double(), layout), channel_view(shift.double(), layout)
    total = x.double() * s + t + residual.double()
    return torch.where(total <= 0, 0.0, total)


def bound(case: Case, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the error of fp32 arithmetic: three roundings, each of at most the operands' sum.

    Standard model of rounding (Higham, "Accuracy and Stability of Numerical Algorithms", 2.2). Half
    types add the rounding of the result, and one of the normalised value before the residual, which
    eager torch makes.
    """
    x, residual, scale, shift = inputs
    layout = str(case.parameters["layout"])
    s, t = channel_view(scale.double(), layout), channel_view(shift.double(), layout)
    product, r = x.double() * s, residual.double()
    magnitude = (product.abs() + t.abs() + r.abs()).nan_to_num()
    error = 3 * 2.0**-24 * magnitude
    if x.dtype == torch.float32:
        return error
    return error + half_ulp(product + t, x.dtype) + half_ulp(product + t + r, x.dtype)


def fold(
    weight: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scale and shift [C] in fp32 that batch norm of inference amounts to."""
    scale = weight.double() / torch.sqrt(variance.double() + eps)
    return scale.float(), (bias.double() - mean.double() * scale).float()
