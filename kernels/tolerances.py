"""How far an output may be from its float64 reference, by kernel and dtype, each with its source.

Zero means exact: the reference rounded once to the output's dtype, bit for bit, except that any NaN
equals any NaN and -0.0 equals 0.0. That one rounding is right also through fp32, since 24 bits are
at least twice 11 plus two (Figueroa, "When is double rounding innocuous?", 1995).
"""

import torch

from kernels.cases import Case

EXACT = 0.0


def half_ulp(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return half a unit in the last place of `dtype` at each of the float64 `values`.

    That is what one rounding to nearest may lose; below the smallest normal number the unit is that
    of the subnormals.
    """
    info = torch.finfo(dtype)
    magnitude = values.abs().nan_to_num(nan=0.0, posinf=info.max).clamp(info.tiny, info.max)
    return torch.exp2(torch.floor(torch.log2(magnitude))) * (info.eps / 2)


def bound(case: Case, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor | float:
    """Return the absolute error allowed, one for all elements or one each (float64); 0 is exact."""
    from kernels.registry import definition

    return definition(case.kernel).bound(case, inputs)
