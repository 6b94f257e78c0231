"""SiLU in Triton: a tile of 1024 elements a program, in fp32, masked at the end."""

# Triton's own language: its kernels carry no Python types, and constants are in capitals.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _silu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside).to(tl.float32)
    tl.store(y + i, (v * tl.sigmoid(v)).to(y.dtype.element_ty), mask=inside)


def launch(x: torch.Tensor, *, out: torch.Tensor) -> None:
    """Write x * sigmoid(x) to `out`."""
    n = x.numel()
    _silu[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK=BLOCK)
