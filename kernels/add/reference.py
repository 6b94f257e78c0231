"""What vector add means."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a + b in float64, in which the sum of two narrower floats rounds innocuously.

    Signs of zero are those of IEEE 754, 6.3: -0 + -0 is -0, any other sum that is zero is 0.
    """
    return a.double() + b.double()
