"""Memory for buffers: rows on 512-byte boundaries, and one piece for one case after another."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

ALIGNMENT_BYTES = 512


def free_bytes(device: torch.device) -> int:
    """Return what a GPU has left once this process has given back what it does not use.

    Tests that ran before leave unused blocks in torch's cache, and objects that wait for Python to
    collect them: counted as taken, they would leave a measurement few places.
    """
    gc.collect()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


def aligned_rows(count: int, size: int, device: torch.device) -> torch.Tensor:
    """Return bytes of shape (count, size rounded up), each row on a 512-byte boundary."""
    width = -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    raw = torch.empty(count * width + ALIGNMENT_BYTES, dtype=torch.uint8, device=device)
    first = -raw.data_ptr() % ALIGNMENT_BYTES
    return raw[first : first + count * width].view(count, width)


@cache
def scattered(count: int, array: int) -> tuple[int, ...]:
    """Return an order of `count` rows for the arrays of one number, the same in every process.

    Rows in one order for all arrays lie equally far apart in every set. How far an output is from
    its input is worth a few thousandths of a large launch's time, and depends on their size.
    """
    return tuple(int(row) for row in np.random.default_rng(1 + array).permutation(count))


class Arena:
    """Memory for the buffers of one case after another, taken from the device once.

    Large blocks of ever new sizes would fill the device with what the allocator keeps of each.

    It takes `at_most` so much, and nothing where the device has not even that left: `size` is what
    it took, `missing` what it lacks. Units: all in bytes.
    """

    def __init__(self, size: int, device: torch.device, *, at_most: int | None = None) -> None:
        self._device, self._used = device, 0
        granted = size if at_most is None else min(size, at_most)
        try:
            self._raw = aligned_rows(1, granted, device)[0]
        except torch.OutOfMemoryError:
            self._raw, granted = aligned_rows(1, 0, device)[0], 0
        self.size, self.missing = self._raw.numel(), size - granted

    @contextmanager
    def region(self) -> Iterator[None]:
        """Give back at the end whatever was taken inside."""
        before = self._used
        try:
            yield
        finally:
            self._used = before

    def rows(self, count: int, size: int) -> torch.Tensor:
        """Return bytes of shape (count, size rounded up to 512), each row on a 512-byte boundary.

        Where the arena has no room for them they are allocated by themselves.
        """
        width = -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        first, after = self._used, self._used + count * width
        if after > self.size:
            return aligned_rows(count, size, self._device)
        self._used = after
        return self._raw[first:after].view(count, width)
