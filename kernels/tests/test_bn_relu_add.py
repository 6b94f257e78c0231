"""Batch norm of inference, residual and ReLU in both layouts."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

from kernels import registry
from kernels.bn_relu_add.reference import fold
from kernels.cases import Case, cases
from kernels.implementation import Implementation
from kernels.inputs import make_inputs
from kernels.tests.guarded import check
from kernels.tests.problems import skip_unless_available

EVERY = pytest.mark.parametrize(
    ("implementation", "dtype"),
    [
        pytest.param(i, dtype, id=f"{i.name}-{str(dtype).removeprefix('torch.')}")
        for i in registry.implementations("bn_relu_add")
        for dtype in i.dtypes
    ],
)
LAYOUTS = pytest.mark.parametrize("layout", ["nhwc", "nchw"])
VECTOR = registry.get("bn_relu_add", "cuda_vector")
SHAPES = [(2, 3, 5, 7), (1, 1, 1, 1), (3, 7, 7, 20), (2, 4, 4, 64), (1, 5, 3, 8), (2, 20, 7, 7), (1, 33, 1, 9)]  # fmt: skip


def problem(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, device: torch.device
) -> tuple[Case, tuple[torch.Tensor, ...], torch.Tensor]:
    definition = registry.definition("bn_relu_add")
    name = str(dtype).removeprefix("torch.")
    case = Case("bn_relu_add", name, shape, parameters={"layout": layout})
    inputs = make_inputs(case, device, 3)
    return case, inputs, definition.reference(*inputs, layout=layout)


def run(
    implementation: Implementation,
    case: Case,
    inputs: tuple[torch.Tensor, ...],
    expected: torch.Tensor,
) -> None:
    skip_unless_available(implementation, inputs[0].device, inputs[0].dtype)
    check(
        implementation,
        inputs,
        expected,
        implementation.definition.bound(case, inputs),
        parameters=case.parameters,
    )


@EVERY
@LAYOUTS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(
    implementation: Implementation,
    dtype: torch.dtype,
    layout: str,
    shape: tuple[int, ...],
    device: torch.device,
) -> None:
    run(implementation, *problem(shape, dtype, layout, device))


@pytest.mark.parametrize("dtype", VECTOR.dtypes)
@LAYOUTS
@pytest.mark.parametrize("count", [8, 20, 21])
def test_every_pair_of_offsets(
    dtype: torch.dtype, layout: str, count: int, device: torch.device
) -> None:
    shape = (3, 13, 7, count) if layout == "nhwc" else (3, count, 13, 7)
    case, inputs, expected = problem(shape, dtype, layout, device)
    phases = range(16 // dtype.itemsize)
    skip_unless_available(VECTOR, device, dtype)
    bound = VECTOR.definition.bound(case, inputs)
    for offset, output_offset in product(phases, phases):
        check(
            VECTOR,
            inputs,
            expected,
            bound,
            input_offsets=(offset, (offset + count) % len(phases), 0, 0),
            output_offset=output_offset,
            parameters=case.parameters,
        )


@pytest.mark.parametrize("offsets", [(1, 0), (0, 3), (2, 2)])
def test_tables_may_be_slices(offsets: tuple[int, int], device: torch.device) -> None:
    for dtype in VECTOR.dtypes:
        case, inputs, expected = problem((2, 16, 16, 64), dtype, "nhwc", device)
        skip_unless_available(VECTOR, device, dtype)
        bound = VECTOR.definition.bound(case, inputs)
        placed = (0, 0, *offsets)
        check(VECTOR, inputs, expected, bound, input_offsets=placed, parameters=case.parameters)


@pytest.mark.parametrize("dtype", VECTOR.dtypes)
@LAYOUTS
def test_the_vector_form_is_within_one_rounding_of_fp32(
    dtype: torch.dtype, layout: str, device: torch.device
) -> None:
    skip_unless_available(VECTOR, device, dtype)
    _, inputs, expected = problem((4, 16, 16, 64), dtype, layout, device)
    found = VECTOR(*inputs, layout=layout).double()
    x, residual, scale, shift = inputs
    s, t = (
        v if layout == "nhwc" else v.view(1, -1, 1, 1) for v in (scale.double(), shift.double())
    )
    magnitude = (x.double() * s).abs() + t.abs() + residual.double().abs()
    unit = torch.finfo(dtype).eps / 2
    assert ((found - expected).abs() <= 3 * 2.0**-24 * magnitude + unit * expected.abs()).all()


@pytest.mark.parametrize("dtype", VECTOR.dtypes)
@LAYOUTS
def test_it_is_what_torch_layers_compute(
    dtype: torch.dtype, layout: str, device: torch.device
) -> None:
    skip_unless_available(VECTOR, device, dtype)
    torch.manual_seed(1)
    norm = torch.nn.BatchNorm2d(12).to(device).eval()
    with torch.no_grad():
        for values in (norm.weight, norm.bias, norm.running_mean):
            assert values is not None
            values.normal_()
        assert norm.running_var is not None
        norm.running_var.uniform_(0.2, 2.0)
        x, residual = torch.randn(2, 2, 12, 5, 9, device=device)
        expected = F.relu(norm(x) + residual)
        assert norm.running_mean is not None
        scale, shift = fold(norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.eps)
    if layout == "nhwc":
        x, residual, expected = (
            v.permute(0, 2, 3, 1).contiguous() for v in (x, residual, expected)
        )
    found = VECTOR(x.to(dtype), residual.to(dtype), scale, shift, layout=layout)
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.02)


def test_channels_last_tensors_are_taken_as_views(device: torch.device) -> None:
    skip_unless_available(VECTOR, device, torch.float32)
    x = torch.randn(2, 8, 3, 5, device=device).to(memory_format=torch.channels_last)
    tables = torch.ones(8, device=device), torch.zeros(8, device=device)
    view = x.permute(0, 2, 3, 1)
    found = VECTOR(view, view, *tables, layout="nhwc")
    assert torch.equal(found, (view + view).clamp_min(0))


@LAYOUTS
def test_nan_and_minus_zero(layout: str, device: torch.device) -> None:
    for dtype in VECTOR.dtypes:
        skip_unless_available(VECTOR, device, dtype)
        x = torch.full((1, 2, 3, 4), -0.0, dtype=dtype, device=device)
        x[0, 1, 1, 1] = math.nan
        count = 4 if layout == "nhwc" else 2
        ones = torch.ones(count, device=device)
        found = VECTOR(x, torch.full_like(x, -0.0), ones, ones * -0.0, layout=layout)
        assert found.isnan().nonzero().tolist() == [[0, 1, 1, 1]]
        assert not found[~found.isnan()].signbit().any()


@EVERY
@LAYOUTS
def test_special_values(
    implementation: Implementation, dtype: torch.dtype, layout: str, device: torch.device
) -> None:
    case, (x, residual, *tables), _ = problem((3, 7, 7, 20), dtype, layout, device)
    info = torch.finfo(dtype)
    specials = [math.nan, math.inf, -math.inf, -0.0, info.tiny * info.eps, info.max, -info.max]
    values = torch.tensor(specials, dtype=dtype, device=device)
    x.view(-1)[5::300][: len(specials)] = values
    residual.view(-1)[5::300][:3] = values[[1, 2, 0]]  # NaN and inf, inf and -inf, -inf and NaN
    residual.view(-1)[-len(specials) :] = values
    inputs = (x, residual, *tables)
    expected = implementation.definition.reference(*inputs, layout=layout)
    assert expected.isnan().sum() == 4
    run(implementation, case, inputs, expected)


def test_more_images_than_a_grid_has_rows(device: torch.device) -> None:
    skip_unless_available(VECTOR, device, torch.float16)
    for layout, shape in (("nhwc", (65_537, 1, 2, 5)), ("nchw", (65_537, 5, 1, 2))):
        run(VECTOR, *problem(shape, torch.float16, layout, device))


def test_arguments_that_do_not_fit_are_refused(device: torch.device) -> None:
    x = torch.ones(2, 3, 4, 5, device=device)
    five, three = torch.ones(5, device=device), torch.ones(3, device=device)
    with pytest.raises(ValueError, match=r"scale is \[3\].*expected \[5\] float32"):
        VECTOR(x, x, three, five, layout="nhwc")
    with pytest.raises(ValueError, match=r"shift is \[5\].*expected \[3\] float32"):
        VECTOR(x, x, three, five, layout="nchw")
    with pytest.raises(ValueError, match=r"scale is \[5\] float16"):
        VECTOR(x, x, five.half(), five)
    with pytest.raises(ValueError, match="expected nhwc or nchw"):
        VECTOR(x, x, five, five, layout="nhcw")
    with pytest.raises(ValueError, match="expected 4 dimensions"):
        VECTOR(x[0], x[0], five, five)
    with pytest.raises(ValueError, match="residual is"):
        VECTOR(x, x[:1], five, five)
    assert VECTOR(x[:0], x[:0], five, five).shape == (0, 3, 4, 5)
    in_place = x.clone()
    assert VECTOR(in_place, x, five, five, out=in_place).eq(3).all()


@pytest.mark.parametrize("tier", ["quick", "default", "correctness"])
@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_cases_exist_for_both_layouts(device_type: str, tier: str) -> None:
    found = cases("bn_relu_add", device_type, tier)
    assert {case.parameters["layout"] for case in found} == {"nhwc", "nchw"}
