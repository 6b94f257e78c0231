"""What ReLU means: max(x, 0) with NaN kept, and +0.0 for -0.0."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return max(x, 0) in float64; NaN stays NaN, and -0 becomes 0."""
    wide = x.double()
    return torch.where(wide <= 0, 0.0, wide)
