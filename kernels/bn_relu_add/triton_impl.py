"""Batch norm of inference, residual and ReLU in Triton: flat tiles, the channel by division."""

# Triton's own language: its kernels carry no Python types, and constants are in capitals.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _bn_relu_add(
    x, residual, scale, shift, y, n, channels, PLANE: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    c = (i // PLANE) % channels
    v = tl.load(x + i, mask=inside).to(tl.float32) * tl.load(scale + c) + tl.load(shift + c)
    v += tl.load(residual + i, mask=inside).to(tl.float32)
    v = tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=inside)


def launch(
    x: torch.Tensor,
    residual: torch.Tensor,
    scale: torch.Tensor,
    shift: torch.Tensor,
    *,
    out: torch.Tensor,
    layout: str,
) -> None:
    """Write max(x * scale + shift + residual, 0) to `out`."""
    n = x.numel()
    plane = 1 if layout == "nhwc" else x.shape[2] * x.shape[3]
    grid = (triton.cdiv(n, BLOCK),)
    _bn_relu_add[grid](x, residual, scale, shift, out, n, scale.numel(), PLANE=plane, BLOCK=BLOCK)
