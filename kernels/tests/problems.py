"""The elementwise kernels with values and references made once, for tests that only slice them."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest
import torch

from kernels import registry
from kernels.cases import Case, Scalar
from kernels.implementation import Implementation
from kernels.inputs import VECTOR_BYTES

ELEMENTWISE = ("relu", "add", "silu", "scale_relu")
LONGEST = (1 << 20) + 1
SMALL = (*range(68), 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025)


def large_lengths(device: torch.device, last: int = 20) -> list[int]:
    """Return 2^k - 1, 2^k and 2^k + 1 up to 2^last; a CPU takes one of the three from 2^14 on."""
    return [
        (1 << k) + d
        for k in range(11, last + 1)
        for d in (-1, 0, 1)
        if device.type == "cuda" or k < 14 or d == k % 3 - 1
    ]


class Values(NamedTuple):
    """Inputs of LONGEST elements, their float64 reference and its bound."""

    inputs: tuple[torch.Tensor, ...]
    expected: torch.Tensor
    bound: torch.Tensor | float
    parameters: dict[str, Scalar]

    def first(self, n: int) -> "tuple[list[torch.Tensor], torch.Tensor, torch.Tensor | float]":
        """Return the problem of the first `n` elements."""
        bound = self.bound[:n] if isinstance(self.bound, torch.Tensor) else self.bound
        return [x[:n] for x in self.inputs], self.expected[:n], bound


@cache
def values(kernel: str, dtype: torch.dtype, device: torch.device) -> Values:
    """Return random values of both signs with a NaN, infinities and -0.0 every so often."""
    definition = registry.definition(kernel)
    generator = torch.Generator(device=device).manual_seed(20_26)
    parameters = dict(definition.parameters)
    name = str(dtype).removeprefix("torch.")
    case = Case(kernel, name, (LONGEST,), parameters=parameters)
    inputs = definition.make_inputs(case, device, generator)
    for place, x in enumerate(inputs):
        x[3 + place :: 101] = float("nan")
        x[5 + place :: 103] = float("inf")
        x[7 + place :: 107] = -float("inf")
        x[11 + place :: 109] = -0.0
        x[19::113] = -0.0  # of all inputs at once: their sum alone is -0
    expected = definition.reference(*inputs, **parameters)
    return Values(inputs, expected, definition.bound(case, inputs), parameters)


def offset_tuples(implementation: Implementation, itemsize: int) -> Iterator[tuple[int, ...]]:
    """Yield offsets of the inputs and the output modulo 16 bytes: every combination.

    Only the vector form looks at one input apart from another; for the rest they go together.
    """
    count, phases = len(implementation.definition.inputs), range(VECTOR_BYTES // itemsize)
    if implementation.name == "cuda_vector":
        yield from product(phases, repeat=count + 1)
        return
    for offset, output_offset in product(phases, repeat=2):
        yield (*(offset,) * count, output_offset)


def every_implementation() -> list[Any]:
    """Return (implementation, dtype) pairs of the elementwise kernels as test parameters."""
    return [
        pytest.param(i, dtype, id=f"{kernel}-{i.name}-{str(dtype).removeprefix('torch.')}")
        for kernel in ELEMENTWISE
        for i in registry.implementations(kernel)
        for dtype in i.dtypes
    ]


def skip_unless_available(
    implementation: Implementation, device: torch.device, dtype: torch.dtype
) -> None:
    """Skip the test with the reason why the implementation cannot run here."""
    reason = implementation.unavailable(device, dtype)
    if reason:
        pytest.skip(reason)
