"""Arguments, cost and cases of conversion between fp32 and the half types."""

from collections.abc import Mapping, Sequence
from math import prod

import torch

from kernels.cases import Case, Scalar, elementwise_cases
from kernels.cost import Cost
from kernels.definition import FLOATS
from kernels.inputs import expect, refuse_overlap

NAME = "convert"
ROUNDINGS = ("rn", "rz", "ru", "rd")
_HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
_TARGETS = {**_HALVES, "float32": torch.float32}


def target(parameters: Mapping[str, Scalar]) -> torch.dtype:
    """Return the dtype that `to` names. Raises ValueError when `to` or `rounding` is not known."""
    to, rounding = str(parameters.get("to", "float16")), parameters.get("rounding", "rn")
    if to not in _TARGETS or rounding not in ROUNDINGS:
        raise ValueError(
            f"{NAME}: to={to!r}, rounding={rounding!r}; expected to one of {', '.join(_TARGETS)} "
            f"and rounding one of {', '.join(ROUNDINGS)}"
        )
    return _TARGETS[to]


def check(
    inputs: Sequence[torch.Tensor], out: torch.Tensor | None, parameters: Mapping[str, Scalar]
) -> torch.Tensor:
    """Refuse arguments that do not fit; return the output."""
    (x,) = inputs
    dtype = target(parameters)
    fits = (x.dtype is torch.float32) != (dtype is torch.float32) and x.dtype in FLOATS
    expect(fits, NAME, "x", x, "float32 to a half type, or a half type to float32")
    expect(x.is_cuda or x.is_cpu, NAME, "x", x, "a CUDA or CPU tensor")
    expect(x.is_contiguous(), NAME, "x", x, "a contiguous tensor; call .contiguous()")
    if out is None:
        return torch.empty_like(x, dtype=dtype)
    expected = f"{list(x.shape)} {str(dtype).removeprefix('torch.')} on {x.device}, contiguous"
    same = out.dtype is dtype and out.shape == x.shape and out.device == x.device
    expect(same and out.is_contiguous(), NAME, "out", out, expected)
    if x.data_ptr() == out.data_ptr() and x.numel():
        raise ValueError(f"{NAME}: out is the memory of x, whose elements have another size")
    refuse_overlap(NAME, "x", x, out)
    return out


def cost(case: Case) -> Cost:
    """Return one read and one write an element; a conversion is no arithmetic."""
    elements = prod(case.shape)
    return Cost(elements * (case.torch_dtype.itemsize + target(case.parameters).itemsize), 0)


def cases(device_type: str, tier: str) -> tuple[Case, ...]:
    """Return the cases of a tier: every rounding when checking, the common ones when timing."""
    found: list[Case] = []
    roundings = ROUNDINGS if tier == "correctness" else ("rn",)
    narrow = [("float32", half, rounding) for half in _HALVES for rounding in roundings]
    widen = [(half, "float32", "rn") for half in _HALVES]
    pairs = narrow + widen if tier != "quick" else [("float32", "float16", "rn")]
    for source, to, rounding in pairs:
        parameters: dict[str, Scalar] = {"to": to, "rounding": rounding}
        found += elementwise_cases(NAME, (_TARGETS[source],), 1, device_type, tier, parameters)
    return tuple(found)
