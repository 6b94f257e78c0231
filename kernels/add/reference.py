"""What vector add means."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a + b in float64, in which the sum of two narrower floats rounds innocuously."""
    return a.double() + b.double()
