"""The CUDA implementations: one source, a kernel by name or, for cuda_vector, by problem."""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kernels import host
from kernels.cuda import PLANS, CudaImplementation, Function
from kernels.definition import Definition
from kernels.fused_transform.arguments import span_bytes
from kernels.fused_transform.layout import BOUNDARY_BYTES, Rows, rows_of, shifted
from kernels.fused_transform.transform import TakesTransform, Transform, transform_of
from kernels.fused_transform.variants import (
    DEFAULTS,
    LEAST,
    SCALAR,
    VECTOR_BYTES,
    Types,
    Variant,
    options_of,
    suits,
)

SOURCE = Path(__file__).parent / "cuda.cu"
MAX_BLOCKS = 2**31 - 1
CPU = -1  # as a device's index
Choice = Callable[[Types, Rows], Variant]
Variants = tuple[Variant, ...]


class Plan(NamedTuple):
    """All of a launch but its addresses. `constants` are the packed Layout and Affine."""

    function: Function
    blocks: int
    constants: bytes


def host_options(compiled: Variants, types: Types) -> tuple[str, ...]:
    """Return the options of a CPU build: the defaults together, so that one build serves all."""
    defaults = tuple(DEFAULTS.values())
    if types.vectors_possible and set(compiled) <= set(defaults):
        compiled = defaults
    # What is shared is thread-local there, too large for the storage that the faster model has.
    return (*options_of(compiled, types), "-ftls-model=global-dynamic")


def function_of(
    name: str, threads: int, size: int, compiled: Variants, types: Types, device_index: int
) -> Function:
    """Return a kernel ready to launch: compiled with those of `compiled` and loaded once.

    It takes two addresses and `size` bytes of constants.
    """
    if device_index == CPU:
        return _function(host.library(SOURCE, host_options(compiled, types)), name, size, threads)
    from kernels import launch

    module = launch.module(SOURCE, device_index, options_of(compiled, types))
    return _function(module, name, size, threads)


@cache
def _function(module: Any, name: str, size: int, threads: int) -> Function:
    """Return a kernel of a `launch.Module` or `host.Library`, made once."""
    function: Function = module.function(name, f"PP{size}s", threads)
    return function


def rows_of_tensors(x: torch.Tensor, out: torch.Tensor) -> Rows:
    """Return the rows of pixels of x and out, which `check` has found to be rows."""
    if x.is_contiguous() and out.is_contiguous():
        return Rows(x.numel() // x.shape[-1])
    rows = rows_of(x.shape, x.stride(), out.stride(), (x.shape[-1], out.shape[-1]))
    if rows is None:
        raise ValueError(
            f"fused_transform: strides {x.stride()} of x and {out.stride()} of out have no common "
            "rows of pixels; call .contiguous() on x"
        )
    return rows


def _is_shifted(types: Types, rows: Rows, source: int, target: int) -> bool:
    """Return whether inputs lie off their vectors in any row."""
    in_size, out_size = types.source.itemsize, types.target.itemsize
    if any(p * in_size % VECTOR_BYTES for p in (rows.x_pitch, rows.x_image)):
        return True
    if any(p * out_size % BOUNDARY_BYTES for p in (rows.y_pitch, rows.y_image)):
        return True
    off = shifted(source, target, types.in_pixel, out_size, types.channels_out)
    return off is not False


def plan_of(
    choose: Choice,
    compiled: Variants,
    types: Types,
    rows: Rows,
    addresses: tuple[int, int],
    transform: Transform,
    device_index: int,
) -> Plan:
    """Return the launch of the variant that `choose` picks, the scalar one where it has no form.

    `addresses` of x and y may be those modulo BOUNDARY_BYTES. `compiled` are the variants that
    share a module with it. Raises ValueError when the grid would be beyond CUDA's limit.
    """
    variant = choose(types, rows)
    if not suits(variant, types, rows, addresses[1]):
        variant = SCALAR
    pixels, row_count, images, x_pitch, y_pitch, x_image, y_image = rows
    blocks, lines = variant.blocks(types, pixels), row_count * images
    if blocks * lines > MAX_BLOCKS:
        raise ValueError(
            f"fused_transform: {lines} rows of {pixels} pixels need {blocks * lines} blocks; "
            f"at most {MAX_BLOCKS} fit a launch"
        )
    in_size, out_size = types.source.itemsize, types.target.itemsize
    constants = struct.pack(
        f"@qqqqqII{len(transform.coefficients)}f",
        pixels, x_pitch * in_size, y_pitch * out_size, x_image * in_size, y_image * out_size,
        row_count, blocks if lines > 1 else 0, *transform.coefficients,
    )  # fmt: skip
    off = variant.has_shifted and _is_shifted(types, rows, *addresses)
    name = f"fused_{variant.kernel}{'_shifted' if off else ''}"
    together = compiled if variant in compiled else (variant,)
    function = function_of(name, variant.threads, len(constants), together, types, device_index)
    return Plan(function, blocks * lines, constants)


class Known(NamedTuple):
    """A call that has been checked: what its repetition still needs."""

    plan: Plan
    x_span: int
    out_span: int
    in_place: bool


class FusedCuda(TakesTransform, CudaImplementation):
    """A kernel of cuda.cu, or whichever `choose` picks for a problem.

    Where a kernel has no form for the problem (many channels, an even D off every boundary) the
    scalar kernel computes it. `variants` gives all that may run for types; they are one module.
    """

    def __init__(
        self,
        definition: Definition,
        name: str,
        variants: Callable[[Types], Variants],
        choose: Choice,
    ) -> None:
        super().__init__(definition, name, SOURCE)
        self.variants = variants
        self._choose = choose
        self._plan = lru_cache(PLANS)(self._make_plan)
        self._known: dict[tuple[Any, ...], Known] = {}

    def _make_plan(
        self, types: Types, rows: Rows, addresses: tuple[int, int], transform: Transform, index: int
    ) -> Plan:
        compiled = self.variants(types)
        return plan_of(self._choose, compiled, types, rows, addresses, transform, index)

    def unavailable(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return in one line why this cannot run on `device` with `dtype`, or None when it can."""
        reason = super().unavailable(device, dtype)
        least = self._least(dtype)
        if reason is None and device.type == "cuda":
            found = torch.cuda.get_device_capability(device)
            if found < least:
                wanted, has = (".".join(map(str, c)) for c in (least, found))
                return f"{self!r} needs compute capability {wanted}; {device} has {has}"
        return reason

    def _least(self, dtype: torch.dtype) -> tuple[int, int]:
        """Return the compute capability without which none of the variants runs."""
        return min(LEAST.get(v.kernel, (0, 0)) for v in self.variants(default_types(dtype)))

    def _options(self, device: torch.device, dtype: torch.dtype) -> tuple[str, ...]:
        """Return those of the default transform."""
        types = default_types(dtype)
        return (options_of if device.type == "cuda" else host_options)(self.variants(types), types)

    def __call__(self, *inputs: Any, out: Any = None, **parameters: Any) -> Any:
        """Compute the kernel and return `out`, or a new tensor of the input's kind.

        A call like an earlier one, at addresses alike, is checked by comparing it with that one: on
        a GPU the host's part of a small launch is longer than the kernel.
        """
        if len(inputs) != 1 or type(out) is not torch.Tensor or torch.compiler.is_compiling():
            return super().__call__(*inputs, out=out, **parameters)
        (x,) = inputs
        if type(x) is not torch.Tensor:
            return super().__call__(x, out=out, **parameters)
        source, target = x.data_ptr(), out.data_ptr()
        key = (
            x.shape, out.shape, x.stride(), out.stride(), x.dtype, out.dtype,
            x.get_device(), out.get_device(), source % BOUNDARY_BYTES, target % BOUNDARY_BYTES,
            *parameters.items(),
        )  # fmt: skip
        try:
            known = self._known.get(key)
        except TypeError:  # a parameter that has no hash is none of ours
            known = None
        if known is not None and source and target:
            distance = target - source
            apart = distance >= known.x_span or -distance >= known.out_span
            if apart or (known.in_place and not distance):
                function, blocks, constants = known.plan
                function(blocks, source, target, constants)
                return out
        result = super().__call__(x, out=out, **parameters)
        if known is None and out.numel():
            self._remember(key, x, out, transform_of(parameters.get("transform")))
        return result

    def _remember(
        self, key: tuple[Any, ...], x: torch.Tensor, out: torch.Tensor, transform: Transform
    ) -> None:
        if len(self._known) >= PLANS:
            self._known.clear()
        alike = x.dtype == out.dtype and x.shape == out.shape and x.stride() == out.stride()
        plan = self._plan_for(x, out, transform)
        self._known[key] = Known(plan, span_bytes(x), span_bytes(out), alike)

    def _plan_for(self, x: torch.Tensor, out: torch.Tensor, transform: Transform) -> Plan:
        types = Types(x.dtype, out.dtype, x.shape[-1], out.shape[-1])
        addresses = (x.data_ptr() % BOUNDARY_BYTES, out.data_ptr() % BOUNDARY_BYTES)
        return self._plan(types, rows_of_tensors(x, out), addresses, transform, out.get_device())

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        (x,) = inputs
        plan = self._plan_for(x, out, transform_of(parameters.get("transform")))
        plan.function(plan.blocks, x.data_ptr(), out.data_ptr(), plan.constants)


def default_types(dtype: torch.dtype) -> Types:
    """Return the types of the default transform for inputs of `dtype`."""
    target = torch.float32 if dtype == torch.uint8 else dtype
    return Types(dtype, target, 3, 3)


def fixed(variant: Variant) -> Choice:
    """Return the choice that is always `variant`."""
    return lambda _types, _rows: variant
