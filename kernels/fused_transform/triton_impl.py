"""The fused transform in Triton: a program owns a run of output elements, not of pixels.

So stores are contiguous and wide for any D; the C loads of an output hit lines that the program
already has in L1. In place that would be a race: an output's inputs are its neighbours' outputs, so
a program then owns whole pixels and stores nothing before all of its threads have loaded.
"""

# Triton's own language: its kernels carry no Python types, and constants are in capitals.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.fused_transform.cuda_impl import rows_of_tensors
from kernels.fused_transform.transform import transform_of

BLOCK = 1024


@triton.jit
def _fused(
    x,
    y,
    elements,
    rows,
    blocks,
    x_pitch,
    y_pitch,
    x_image,
    y_image,
    weight,
    bias,
    C: tl.constexpr,
    D: tl.constexpr,
    SIZE: tl.constexpr,
    OWNED: tl.constexpr,
    IN_PLACE: tl.constexpr,
):
    program = tl.program_id(0)
    row = program // blocks
    image = row // rows
    x += image.to(tl.int64) * x_image + (row - image * rows).to(tl.int64) * x_pitch
    y += image.to(tl.int64) * y_image + (row - image * rows).to(tl.int64) * y_pitch
    first = (program - row * blocks).to(tl.int64) * OWNED
    # The division of 64 bits once a program; within it 32 bits do.
    first_pixel = first // D
    local = (first - first_pixel * D).to(tl.int32) + tl.arange(0, SIZE)
    pixel = local // D
    channel = local - pixel * D
    inside = first + tl.arange(0, SIZE) < elements
    if OWNED < SIZE:
        inside = inside & (tl.arange(0, SIZE) < OWNED)
    total = tl.full((SIZE,), 0.0, tl.float32)
    for d in tl.static_range(D):
        total = tl.where(channel == d, bias[d], total)
    x += first_pixel * C
    for c in tl.static_range(C):
        value = tl.load(x + pixel * C + c, mask=inside, other=0).to(tl.float32)
        factor = tl.full((SIZE,), 0.0, tl.float32)
        for d in tl.static_range(D):
            factor = tl.where(channel == d, weight[c * D + d], factor)
        total += value * factor
    if IN_PLACE:
        tl.debug_barrier()
    tl.store(y + first + tl.arange(0, SIZE), total.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, *, out: torch.Tensor, block: int = BLOCK, **parameters: Any) -> None:
    """Write the transform of x to `out`."""
    transform = transform_of(parameters.get("transform"))
    rows = rows_of_tensors(x, out)
    channels_in, channels_out = x.shape[-1], out.shape[-1]
    split = channels_in * channels_out
    # The arguments have been checked: memory that begins where x does is x itself.
    in_place = x.data_ptr() == out.data_ptr()
    owned = block - block % channels_out if in_place else block
    blocks = triton.cdiv(rows.pixels * channels_out, owned)
    _fused[(blocks * rows.rows * rows.images,)](
        x, out, rows.pixels * channels_out, rows.rows, blocks,
        rows.x_pitch, rows.y_pitch, rows.x_image, rows.y_image,
        transform.coefficients[:split], transform.coefficients[split:],
        C=channels_in, D=channels_out, SIZE=block, OWNED=owned, IN_PLACE=in_place, num_warps=4,
    )  # fmt: skip
