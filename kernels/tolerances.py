"""How far an output may be from its float64 reference, by kernel and dtype, each with its source.

Zero means exact: the reference rounded once to the output's dtype, bit for bit, except that any NaN
equals any NaN; `Definition.either_zero` tells of a zero's sign. That one rounding is right also
through fp32, since 24 bits are at least twice 11 plus two (Figueroa, "When is double rounding
innocuous?", 1995).
"""

from collections.abc import Mapping
from types import MappingProxyType

import torch

from kernels.cases import Case

EXACT = 0.0
_MAXIMUM = "the greater of -0 and 0 may be either of them (IEEE 754-2008, 5.3.1, maxNum)"
EITHER_MAXIMUM: Mapping[str, str] = MappingProxyType(
    {
        "torch": f"{_MAXIMUM}: clamp_min gives -0 on a CPU",
        "torch_compile": f"{_MAXIMUM}, and what is generated depends on the version",
        "triton": f"{_MAXIMUM}, and tl.maximum promises neither",
    }
)
"""Why peers that compute a ReLU by a maximum may give -0 for -0; our own kernels give 0."""


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
