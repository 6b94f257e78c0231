"""Special values planted among inputs: NaN, infinities, both zeros, a subnormal.

A kernel that loses a NaN, or whose tail treats it otherwise than its body, shows only when there
is one in both places. Of several inputs -0 also meets -0: their sum alone is -0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftests.harness.workload import Inputs

_FEWEST = 8
"""Below this many elements the planted values would replace the sample itself."""


def plant(values: Inputs, seed: int) -> Inputs:
    """Return the inputs with special values in the body and at both ends of each floating tensor.

    Integer tensors and tensors of fewer than eight elements pass unchanged. Positions differ
    between inputs, so that a special value usually meets an ordinary one; in head, body and tail
    of inputs of one size there is -0 at the same place.
    """
    places = {
        index: _places(value.numel(), seed + 3 * index)
        for index, value in enumerate(values)
        if value.is_floating_point() and value.numel() >= _FEWEST
    }
    return tuple(
        _planted(value, places[index], _meeting(values, places, value.numel()))
        if index in places
        else value
        for index, value in enumerate(values)
    )


def _places(count: int, seed: int) -> list[int]:
    """Return where a tensor of `count` elements gets its seven values, NaN at both ends."""
    inner = [(seed * 7919 + step * (count // 7 + 1)) % count for step in range(1, 6)]
    return [seed % 3, *inner, count - 1 - seed % 3]


def _meeting(values: Inputs, places: Mapping[int, list[int]], count: int) -> list[int]:
    """Return where all tensors of `count` elements get -0: where none has another value."""
    alike = [where for index, where in places.items() if values[index].numel() == count]
    taken = {place for where in alike for place in where}
    wanted = (3, count // 2, count - 4) if len(alike) > 1 else ()
    return [place for place in wanted if place not in taken]


def _planted(value: torch.Tensor, where: list[int], zeros: list[int]) -> torch.Tensor:
    limits = torch.finfo(value.dtype)
    inf, nan = float("inf"), float("nan")
    specials = [nan, -inf, inf, -0.0, 0.0, limits.smallest_normal / 2, nan, *[-0.0] * len(zeros)]
    result = value.clone(memory_format=torch.contiguous_format)
    index = torch.tensor([*where, *zeros], device=value.device)
    result.view(-1)[index] = torch.tensor(specials, dtype=value.dtype, device=value.device)
    return result
