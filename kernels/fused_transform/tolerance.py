"""How far a result may be from the reference: from the operands' magnitudes, not from ULPs.

Near the zero crossing of x - mean two right results differ by hundreds of ULPs, so a ULP rule
either raises false alarms or, loosened, hides true faults. The bound is what the roundings can do.

Let u = 2^-24 and S[d] = sum over c of (|x[c]| + |mean[c]|) / |std[c]| * |matrix[c][d]|.

- Two steps: mean, x - mean, std and the division round once each, the matrix once, and a sum of C
  products in any order errs by at most C u (Higham, Accuracy and Stability of Numerical Algorithms,
  2nd edition, section 3.1): (C + 5) u S.
- Folded in float64, summed by C fused multiply-adds from the bias: weight and bias round once, the
  sum C times: (C + 1) u S. Folded in fp32: the bias (C + 4) roundings, the last addition one:
  (C + 5) u S.

Factor 1.01 covers products of roundings; the smallest subnormals cover underflow. An fp16 output
adds its own rounding, 2^-11 of the value and half its subnormal spacing.
"""

import torch

from kernels.cases import Case
from kernels.fused_transform.reference import reference
from kernels.fused_transform.transform import transform_of

UNIT = 2.0**-24


def error_bound(case: Case, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the absolute error allowed of each output element, in float64."""
    transform = transform_of(case.parameters.get("transform"))  # type: ignore[arg-type]
    (x,) = inputs
    mean, std, matrix = (torch.from_numpy(a).abs().to(x.device) for a in transform.arrays())
    magnitude = ((x.double().abs() + mean) / std) @ matrix
    magnitude = magnitude.nan_to_num(posinf=0.0)  # NaN and infinities are right or wrong
    channels = transform.channels_in
    bound = 1.01 * (channels + 5) * UNIT * magnitude + (channels + 5) * 2.0**-149
    if case.dtype == "float16" or case.parameters.get("dtype") == "float16":
        values = reference(x, transform=transform).abs().nan_to_num(posinf=0.0)
        bound += 2.0**-11 * (values + bound) + 2.0**-25
    return bound
