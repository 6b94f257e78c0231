"""The fused transform: y = ((x - mean) / std) @ matrix for images [..., C] to [..., D]."""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from kernels.definition import ANY, Definition
from kernels.fused_transform import arguments, torch_impl
from kernels.fused_transform.cases import cases
from kernels.fused_transform.cuda_impl import FusedCuda, fixed
from kernels.fused_transform.reference import reference
from kernels.fused_transform.tolerance import error_bound
from kernels.fused_transform.transform import DEFAULT, PRESETS, TakesTransform, Transform
from kernels.fused_transform.variants import DEFAULTS, Variant, best, vector_variants
from kernels.implementation import Implementation
from kernels.peers import TritonImplementation

__all__ = ["DEFINITION", "IMPLEMENTATIONS", "PRESETS", "Transform", "alone"]
_HERE = Path(__file__).parent
_TORCH = _HERE / "torch_impl.py"

DEFINITION = Definition(
    name="fused_transform",
    summary="((x - mean) / std) @ matrix",
    inputs=("x",),
    dtypes=arguments.DTYPES,
    reference=reference,
    check=arguments.check,
    make_inputs=arguments.make_inputs,
    distribution=arguments.distribution,
    output=arguments.output,
    cost=arguments.cost,
    bound=error_bound,
    cases=cases,
    parameters=MappingProxyType({"transform": DEFAULT, "dtype": ""}),
    either_zero=MappingProxyType(
        {ANY: "a zero comes of terms that cancel, whose roundings decide on which side it lies"}
    ),
)


def _torch(
    name: str, function: Callable[..., None], constants: Callable[..., torch_impl.Constants]
) -> Implementation:
    return torch_impl.FusedTorch(DEFINITION, name, _TORCH, function=function, constants=constants)


def _compiled(
    name: str, function: Callable[..., None], constants: Callable[..., torch_impl.Constants]
) -> Implementation:
    return torch_impl.FusedCompiled(DEFINITION, name, _TORCH, function, constants=constants)


def alone(name: str, variant: Variant) -> FusedCuda:
    """Return an implementation of one variant, of whatever size cuda_vector takes it for."""
    return FusedCuda(DEFINITION, name, lambda _types: (variant,), fixed(variant))


def _cuda(name: str, kernel: str) -> Implementation:
    return alone(f"cuda_{name}", DEFAULTS[kernel])


class _FusedTriton(TakesTransform, TritonImplementation):
    """The kernel of triton_impl.py."""


IMPLEMENTATIONS: tuple[Implementation, ...] = (
    _torch("torch_eager", torch_impl.two_step, torch_impl.two_step_constants),
    _torch("torch_jit", torch_impl.jit, torch_impl.two_step_constants),
    _compiled("torch_compile", torch_impl.two_step_unrolled, torch_impl.two_step_constants),
    _torch("torch_folded", torch_impl.folded, torch_impl.folded_constants),
    _compiled("torch_folded_compile", torch_impl.folded_unrolled, torch_impl.folded_constants),
    _FusedTriton(DEFINITION, _HERE / "triton_impl.py"),
    _cuda("scalar", "scalar"),
    _cuda("direct", "direct"),
    _cuda("shared", "shared"),
    _cuda("async", "pipeline"),
    _cuda("bulk", "bulk"),
    FusedCuda(DEFINITION, "cuda_vector", vector_variants, best),
)
