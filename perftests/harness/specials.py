"""Special values planted among inputs: NaN, infinities, both zeros, a subnormal.

A kernel that loses a NaN, or whose tail treats it otherwise than its body, shows only when there
is one in both places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from perftests.harness.workload import Inputs

_FEWEST = 8
"""Below this many elements the planted values would replace the sample itself."""


def plant(values: Inputs, seed: int) -> Inputs:
    """Return the inputs with special values in the body and at both ends of each floating tensor.

    Integer tensors and tensors of fewer than eight elements pass unchanged. Positions differ
    between inputs, so that a special value usually meets an ordinary one.
    """
    return tuple(_planted(value, seed + 3 * index) for index, value in enumerate(values))


def _planted(value: torch.Tensor, seed: int) -> torch.Tensor:
    if not value.is_floating_point() or value.numel() < _FEWEST:
        return value
    limits = torch.finfo(value.dtype)
    inf, nan = float("inf"), float("nan")
    specials = [nan, -inf, inf, -0.0, 0.0, limits.smallest_normal / 2, nan]
    count = value.numel()
    last = count - 1
    inner = [(seed * 7919 + step * (count // 7 + 1)) % count for step in range(1, 6)]
    where = [seed % 3, *inner, last - seed % 3]
    result = value.clone(memory_format=torch.contiguous_format)
    index = torch.tensor(where, device=value.device)
    result.view(-1)[index] = torch.tensor(specials, dtype=value.dtype, device=value.device)
    return result
