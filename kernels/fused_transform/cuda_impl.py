"""The CUDA implementations: one source, a kernel by name or, for cuda_vector, by problem."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch

from kernels import host
from kernels.cuda import CudaImplementation, Function
from kernels.definition import Definition
from kernels.fused_transform.layout import Rows, chunk_shifted, even_part, rows_of, shifted
from kernels.fused_transform.transform import transform_of
from kernels.fused_transform.variants import LEAST, SCALAR, Types, Variant, host_options

SOURCE = Path(__file__).parent / "cuda.cu"
MAX_BLOCKS = 2**31 - 1
Choice = Callable[[Types, Rows, bool], Variant]
_library = cache(host.Library)


@cache
def function_of(variant: Variant, types: Types, suffix: str, device_index: int) -> Function:
    """Return a kernel ready to launch on a device, -1 being the CPU: compiled and loaded once."""
    name = f"fused_{variant.kernel}{suffix}"
    if device_index < 0:
        library = _library(SOURCE, host_options(variant, types))
        return library.function(name, types.layout, variant.threads)
    from kernels import launch

    module = launch.module(SOURCE, device_index, (*types.options, *variant.options))
    return module.function(name, types.layout, variant.threads)


def rows_of_tensors(x: torch.Tensor, out: torch.Tensor) -> Rows:
    """Return the rows of pixels of x and out, which `check` has found to be rows."""
    if x.is_contiguous() and out.is_contiguous():
        return Rows(x.numel() // x.shape[-1])
    rows = rows_of(x.shape, x.stride(), out.stride(), (x.shape[-1], out.shape[-1]))
    if rows is None:
        raise ValueError(
            f"fused_transform: strides {x.stride()} of x and {out.stride()} of out have no common rows of "
            "pixels; call .contiguous() on x"
        )
    return rows


def _suits(variant: Variant, types: Types, rows: Rows, target: int) -> bool:
    """Return whether a variant's kernel exists for the types and reaches boundaries of every row."""
    if not types.vectors_possible or (
        variant.kernel == "neighbours" and types.channels_in != types.channels_out
    ):
        return variant.kernel == "scalar"
    if variant.by_elements:
        return True
    unit = even_part(types.channels_out)
    itemsize = types.target.itemsize
    return not any(v % unit for v in (target // itemsize, rows.y_pitch, rows.y_image))


def _is_shifted(variant: Variant, types: Types, rows: Rows, source: int, target: int) -> bool:
    """Return whether inputs lie off their vectors in any row."""
    in_size, out_size = types.source.itemsize, types.target.itemsize
    pitches = ((rows.x_pitch, rows.y_pitch), (rows.x_image, rows.y_image))
    if any(x * in_size % 16 or y * out_size % 128 for x, y in pitches):
        return True
    if variant.kernel == "neighbours":
        return chunk_shifted(source, target, in_size, out_size)
    return (
        shifted(source, target, types.channels_in * in_size, out_size, types.channels_out)
        is not False
    )


def launch_variant(
    variant: Variant,
    types: Types,
    rows: Rows,
    source: int,
    target: int,
    coefficients: tuple[float, ...],
    device_index: int,
) -> None:
    """Launch a variant, or the scalar kernel where the variant has none; addresses are integers.

    Raises ValueError when the grid would be beyond CUDA's limit.
    """
    if not _suits(variant, types, rows, target):
        variant = SCALAR
    suffix = ""
    if variant.has_shifted and _is_shifted(variant, types, rows, source, target):
        suffix = "_shifted"
    function = function_of(variant, types, suffix, device_index)
    pixels, row_count, images, *pitches = rows
    blocks = variant.blocks(types, pixels)
    total = blocks * row_count * images
    if total > MAX_BLOCKS:
        raise ValueError(
            f"fused_transform: {row_count * images} rows of {pixels} pixels need {total} blocks; "
            f"at most {MAX_BLOCKS} fit a launch"
        )
    several = blocks if row_count * images > 1 else 0
    in_size, out_size = types.source.itemsize, types.target.itemsize
    x_pitch, y_pitch, x_image, y_image = pitches
    function(
        total, source, target, pixels, x_pitch * in_size, y_pitch * out_size,
        x_image * in_size, y_image * out_size, row_count, several, *coefficients,
    )  # fmt: skip


class FusedCuda(CudaImplementation):
    """A kernel of cuda.cu, or whichever `choose` picks for a problem.

    Where a kernel has no form for the problem (many channels, an even D off every boundary) the
    scalar kernel computes it. `variants` are all that may run.
    """

    def __init__(
        self, definition: Definition, name: str, variants: Sequence[Variant], choose: Choice
    ) -> None:
        super().__init__(definition, name, SOURCE)
        self.variants = tuple(variants)
        self._choose = choose
        self._least = max(LEAST.get(v.kernel, (0, 0)) for v in variants)

    def unavailable(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return in one line why this cannot run on `device` with `dtype`, or None when it can."""
        reason = super().unavailable(device, dtype)
        if reason is None and device.type == "cuda":
            capability = torch.cuda.get_device_capability(device)
            if capability < self._least:
                least, found = (".".join(map(str, c)) for c in (self._least, capability))
                return f"{self!r} needs compute capability {least}; {device} has {found}"
        return reason

    def fingerprint(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return the digest of the CUBINs that may run for the default transform; None on a CPU."""
        if device.type != "cuda" or self.unavailable(device, dtype):
            return None
        from kernels import launch

        index, options = launch.index_of(device), default_types(dtype).options
        prints = [
            launch.module(SOURCE, index, (*options, *v.options)).cubin.fingerprint
            for v in self.variants
        ]
        if len(prints) == 1:
            return prints[0]
        return hashlib.sha256(" ".join(prints).encode()).hexdigest()[:16]

    def first_call(self, device: torch.device) -> dict[str, float | None]:
        """Return what compiling (None when cached) and loading the first variant cost in seconds."""
        if device.type != "cuda":
            return {"compile_s": None, "load_s": None}
        from kernels import launch

        options = (*default_types(torch.float32).options, *self.variants[0].options)
        module = launch.module(SOURCE, launch.index_of(device), options)
        return {"compile_s": module.cubin.compile_s, "load_s": module.load_s}

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        x = inputs[0]
        transform = transform_of(parameters.get("transform"))
        types = Types(x.dtype, out.dtype, x.shape[-1], out.shape[-1])
        rows = rows_of_tensors(x, out)
        source, target = x.data_ptr(), out.data_ptr()
        launch_variant(
            self._choose(types, rows, source == target), types, rows, source, target,
            transform.coefficients, out.get_device(),
        )  # fmt: skip


def default_types(dtype: torch.dtype) -> Types:
    """Return the types of the default transform for inputs of `dtype`."""
    target = torch.float32 if dtype == torch.uint8 else dtype
    return Types(dtype, target, 3, 3)


def fixed(variant: Variant) -> Choice:
    """Return the choice that is always `variant`."""
    return lambda _types, _rows, _in_place: variant


def pixel_count(rows: Rows) -> int:
    """Return the pixels of all rows."""
    return prod(rows[:3])
