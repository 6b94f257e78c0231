"""Scale and ReLU in Triton: a tile of 1024 elements a program, the product in fp32."""

# Triton's own language: its kernels carry no Python types, and constants are in capitals.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _scale_relu(x, y, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside).to(tl.float32) * scale
    v = tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, *, out: torch.Tensor, scale: float) -> None:
    """Write max(x * scale, 0) to `out`."""
    n = x.numel()
    _scale_relu[(triton.cdiv(n, BLOCK),)](x, out, n, scale, BLOCK=BLOCK)
