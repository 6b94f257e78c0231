"""Vector add in Triton: a tile of 1024 elements a program, masked at the end."""

# Triton's own language: its kernels carry no Python types, and constants are in capitals.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _add(a, b, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(y + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def launch(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    """Write a + b to `out`."""
    n = out.numel()
    _add[(triton.cdiv(n, BLOCK),)](a, b, out, n, BLOCK=BLOCK)
