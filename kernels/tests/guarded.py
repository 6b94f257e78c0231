"""Tensors between guard zones, on any alignment, poisoned: what the correctness tests compute on."""

from collections.abc import Mapping, Sequence

import torch

from kernels.cases import Scalar
from kernels.compare import compare
from kernels.implementation import Implementation
from kernels.inputs import empty_at

GUARD = 256  # elements on each side
_PATTERN = 0xA5


class Guarded:
    """A contiguous tensor `offset` elements past a 16-byte boundary, guard zones on both sides."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        offset: int = 0,
        values: torch.Tensor | None = None,
    ) -> None:
        count = torch.Size(shape).numel()
        self._whole = empty_at((count + 2 * GUARD,), dtype, device, offset)
        self._bytes = self._whole.view(torch.uint8)
        self._bytes.fill_(_PATTERN)
        self._edges = (GUARD * dtype.itemsize, (GUARD + count) * dtype.itemsize)
        self.tensor = self._whole[GUARD : GUARD + count].view(tuple(shape))
        if values is None:
            self.poison()
        else:
            self.tensor.copy_(values)

    def poison(self, expected: torch.Tensor | None = None) -> None:
        """Fill with NaN, or a number where NaN is expected: an unwritten element is always seen."""
        self.tensor.fill_(float("nan") if self.tensor.is_floating_point() else 0xDB)
        if expected is not None:
            self.tensor[expected.isnan()] = 7.0

    def intact(self) -> bool:
        """Return whether both guard zones are as they were made."""
        start, end = self._edges
        zones = torch.cat((self._bytes[:start], self._bytes[end:]))
        return bool((zones == _PATTERN).all())


def check(
    implementation: Implementation,
    values: Sequence[torch.Tensor],
    expected: torch.Tensor,
    bound: torch.Tensor | float,
    *,
    out_dtype: torch.dtype | None = None,
    input_offsets: Sequence[int] = (),
    output_offset: int = 0,
    parameters: Mapping[str, Scalar] | None = None,
) -> None:
    """Run on guarded copies of `values` and assert the output, the guards and the inputs."""
    device = values[0].device
    offsets = input_offsets or (0,) * len(values)
    inputs = [
        Guarded(value.shape, value.dtype, device, offset, value)
        for value, offset in zip(values, offsets, strict=True)
    ]
    out = Guarded(expected.shape, out_dtype or values[0].dtype, device, output_offset)
    out.poison(expected)
    told = (
        f"{implementation!r} {values[0].dtype} {list(expected.shape)} in+{list(offsets)} "
        f"out+{output_offset} {dict(parameters or {})}"
    )
    returned = implementation(*(g.tensor for g in inputs), out=out.tensor, **(parameters or {}))
    assert returned is out.tensor, told
    signs = implementation.definition.either_zero_of(implementation.name) is None
    outcome = compare(out.tensor, expected, bound, zero_sign=signs)
    assert outcome.passed, f"{told}: {outcome.detail}"
    assert out.intact(), f"{told}: wrote outside the output"
    for guarded, value in zip(inputs, values, strict=True):
        assert guarded.intact(), f"{told}: wrote outside an input"
        same = torch.equal(guarded.tensor.view(torch.uint8), value.view(torch.uint8))
        assert same, f"{told}: changed an input"
