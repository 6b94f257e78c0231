"""What SiLU means, and how far fp32 arithmetic may be from it."""

import torch

from kernels.cases import Case
from kernels.tolerances import half_ulp


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return x * sigmoid(x) in float64; NaN stays NaN and -inf gives NaN, as in torch.

    A factor that is positive keeps the sign of x (IEEE 754, 6.3): -0 stays -0.
    """
    wide = x.double()
    return wide / (1 + torch.exp(-wide))


def bound(_case: Case, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the error that an implementation in fp32 arithmetic may have.

    The fast exponential errs by 2 + 1.173 |x| units (CUDA C++ Programming Guide, "Mathematical
    Functions", __expf), the rest by four. Where x < -88 a form that computes exp(-x) overflows and
    gives 0 for a result below 3e-37. Half types add their own rounding.
    """
    (x,) = inputs
    wide = x.double().nan_to_num()
    expected = reference(wide)
    units = 6 + 1.173 * wide.abs()
    error = units * 2.0**-23 * expected.abs() + 2.0**-120
    return error if x.dtype == torch.float32 else error + half_ulp(expected, x.dtype)
