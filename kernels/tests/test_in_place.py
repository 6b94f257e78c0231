"""In place, over and over at many sizes: a thread that stores what another has yet to load is seen.

Such a race shows only now and then, and only once several blocks and warps are at work.
"""

from collections.abc import Iterator, Sequence

import pytest
import torch

from kernels import registry
from kernels.cases import Case
from kernels.compare import compare
from kernels.implementation import Implementation
from kernels.inputs import empty_at
from kernels.tests import problems

REPETITIONS = {"cpu": 1, "cuda": 12}
COMPILED = "torch_compile"  # a compilation for each shape


def sizes(implementation: Implementation, device: torch.device) -> Sequence[int]:
    if implementation.name == COMPILED:
        return (4099,)
    return (1, 67, 1025, 4099) if device.type == "cpu" else (1, 67, 1025, 4099, 70_001, 1_048_575)


def placed(values: Sequence[torch.Tensor], offsets: Sequence[int]) -> list[torch.Tensor]:
    return [
        empty_at(tuple(v.shape), v.dtype, v.device, offset).copy_(v)
        for v, offset in zip(values, offsets, strict=True)
    ]


def offsets_of(count: int, place: int) -> Iterator[list[int]]:
    """Yield offsets of the inputs: alike, and those that are not the output off by one."""
    yield [0] * count
    yield [3] * count
    if count > 1:
        yield [3 if i == place else 1 for i in range(count)]


@pytest.mark.parametrize(("implementation", "dtype"), problems.every_implementation())
def test_each_input_may_be_the_output(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    known = problems.values(implementation.kernel, dtype, device)
    for n in sizes(implementation, device):
        values, expected, bound = known.first(n)
        for place in range(len(values)):
            for offsets in offsets_of(len(values), place):
                for _ in range(REPETITIONS[device.type]):
                    inputs = placed(values, offsets)
                    implementation(*inputs, out=inputs[place], **known.parameters)
                    signs = implementation.definition.either_zero_of(implementation.name) is None
                    outcome = compare(inputs[place], expected, bound, zero_sign=signs)
                    assert outcome.passed, f"{n} in+{offsets}, out is {place}: {outcome.detail}"


BATCH_NORM = registry.definition("bn_relu_add")


@pytest.mark.parametrize(
    ("implementation", "dtype"),
    [
        pytest.param(i, dtype, id=f"{i.name}-{str(dtype).removeprefix('torch.')}")
        for i in registry.implementations("bn_relu_add")
        for dtype in i.dtypes
    ],
)
@pytest.mark.parametrize("place", [0, 1], ids=["x", "residual"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_the_residual_may_be_the_output_too(
    implementation: Implementation,
    dtype: torch.dtype,
    place: int,
    layout: str,
    device: torch.device,
) -> None:
    problems.skip_unless_available(implementation, device, dtype)
    shapes = (
        [(2, 5, 7, 12)] if implementation.name == COMPILED else [(2, 5, 7, 12), (9, 33, 31, 20)]
    )
    for shape in shapes:
        name = str(dtype).removeprefix("torch.")
        case = Case("bn_relu_add", name, shape, parameters={"layout": layout})
        generator = torch.Generator(device=device).manual_seed(9)
        values = BATCH_NORM.make_inputs(case, device, generator)
        expected = BATCH_NORM.reference(*values, layout=layout)
        bound = BATCH_NORM.bound(case, values)
        for offsets in ([0, 0, 0, 0], [3, 3, 0, 0], [1, 2, 0, 0]):
            for _ in range(REPETITIONS[device.type]):
                inputs = placed(values, offsets)
                implementation(*inputs, out=inputs[place], layout=layout)
                outcome = compare(inputs[place], expected, bound)
                assert outcome.passed, f"{shape} in+{offsets}: {outcome.detail}"


@pytest.mark.parametrize("table", [2, 3], ids=["scale", "shift"])
def test_a_table_in_the_output_is_refused(table: int, device: torch.device) -> None:
    implementation = registry.get("bn_relu_add", "cuda_vector")
    problems.skip_unless_available(implementation, device, torch.float32)
    whole = torch.ones(48, device=device)
    x, out = torch.ones(2, 1, 2, 2, 8, device=device)
    tables = [torch.ones(8, device=device), torch.ones(8, device=device)]
    tables[table - 2] = whole[4:12]
    inside = whole[8:40].view_as(out)
    with pytest.raises(ValueError, match=r"out overlaps s\w+ \(\+16 bytes\); expected separate"):
        implementation(x, x, *tables, out=inside)
    assert implementation(x, x, *tables, out=whole[12:44].view_as(out)).eq(3).all()
