"""Every elementwise implementation on every length and alignment, against float64."""

from itertools import product

import pytest
import torch

from kernels import registry
from kernels.implementation import Implementation
from kernels.inputs import VECTOR_BYTES
from kernels.tests import problems
from kernels.tests.guarded import check

PAIRS = pytest.mark.parametrize(("implementation", "dtype"), problems.every_implementation())
COMPILED = "torch_compile"  # a compilation for each shape: a few lengths say as much


def lengths(implementation: Implementation, all_lengths: tuple[int, ...]) -> tuple[int, ...]:
    return (1, 3, 67, 1024, 4097) if implementation.name == COMPILED else all_lengths


@PAIRS
def test_lengths_about_vectors_and_warps(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    values = problems.values(implementation.kernel, dtype, device)
    for n in lengths(implementation, problems.SMALL):
        inputs, expected, bound = values.first(n)
        check(implementation, inputs, expected, bound, parameters=values.parameters)


@PAIRS
def test_lengths_about_powers_of_two(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    if implementation.name == COMPILED:
        pytest.skip("a compilation for each length; the lengths above say as much")
    last = 20
    if device.type == "cpu" and implementation.name != "cuda_vector":
        last = 16  # what has one launch shape for all sizes says no more beyond
    values = problems.values(implementation.kernel, dtype, device)
    for n in problems.large_lengths(device, last):
        inputs, expected, bound = values.first(n)
        check(implementation, inputs, expected, bound, parameters=values.parameters)


@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for kernel in ("relu", "add")
        for i in registry.implementations(kernel)
        if i.name.startswith("cuda") and torch.float16 in i.dtypes
    ],
)
def test_every_length_up_to_4099(implementation: Implementation, device: torch.device) -> None:
    problems.skip_unless_available(implementation, device, torch.float16)
    x = torch.randn(4099, device=device).half()
    inputs = [x] * len(implementation.definition.inputs)
    expected = implementation.definition.reference(*inputs).half()
    out = torch.empty(4099 + 8, dtype=torch.float16, device=device)
    for n in range(1, 4100):
        out.fill_(float("nan"))
        implementation(*(v[:n] for v in inputs), out=out[:n])
        assert torch.equal(out[:n], expected[:n]), n
        assert bool(out[n:].isnan().all()), n


@PAIRS
def test_every_pair_of_offsets(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    values = problems.values(implementation.kernel, dtype, device)
    n = 2 * 4096 // dtype.itemsize + 3  # whole tiles and two cut ones
    inputs, expected, bound = values.first(n)
    for *input_offsets, output_offset in problems.offset_tuples(implementation, dtype.itemsize):
        check(
            implementation,
            inputs,
            expected,
            bound,
            input_offsets=input_offsets,
            output_offset=output_offset,
            parameters=values.parameters,
        )


@PAIRS
@pytest.mark.parametrize("n", [1, 2, 7, 33])
def test_short_tensors_at_every_offset(
    implementation: Implementation, dtype: torch.dtype, n: int, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    if not implementation.name.startswith("cuda"):
        pytest.skip("the heads and tails of our own kernels are meant")
    values = problems.values(implementation.kernel, dtype, device)
    inputs, expected, bound = values.first(n)
    for offset, output_offset in product(range(VECTOR_BYTES // dtype.itemsize), repeat=2):
        check(
            implementation,
            inputs,
            expected,
            bound,
            input_offsets=[offset] * len(inputs),
            output_offset=output_offset,
            parameters=values.parameters,
        )


@PAIRS
def test_without_out_a_new_tensor_comes_back(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    values = problems.values(implementation.kernel, dtype, device)
    inputs = [x[:1026].view(2, 27, 19).clone() for x in values.inputs]
    out = torch.empty_like(inputs[0])
    implementation(*inputs, out=out, **values.parameters)
    result = implementation(*inputs, **values.parameters)
    assert result.shape == (2, 27, 19)
    assert torch.equal(result.view(torch.uint8), out.view(torch.uint8))


@PAIRS
@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_empty_tensors_are_computed_to_nothing(
    implementation: Implementation,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    device: torch.device,
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    count = len(implementation.definition.inputs)
    inputs = [torch.empty(shape, dtype=dtype, device=device) for _ in range(count)]
    assert implementation(*inputs).shape == shape
    assert implementation(*inputs, out=torch.empty_like(inputs[0])).shape == shape
    values = problems.values(implementation.kernel, dtype, device)
    later, expected, bound = values.first(5)
    check(implementation, later, expected, bound, parameters=values.parameters)
