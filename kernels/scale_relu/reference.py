"""What scale and ReLU means."""

import torch


def reference(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Return max(x * scale, 0) in float64, the scale rounded to fp32 first.

    NaN stays NaN, and a product of -0 becomes 0.

    The product passes through fp32, as it does in every implementation: a half type's result is
    rounded twice, and the first rounding is part of the meaning.
    """
    rounded = torch.tensor(scale, dtype=torch.float32).double().item()
    product = (x.double() * rounded).float().double()
    return torch.where(product <= 0, 0.0, product)
