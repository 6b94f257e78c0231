"""Special values, element by element: NaN, infinities, zeros' signs, subnormals, overflow and ties."""

import math

import numpy as np
import pytest
import torch

from kernels import registry
from kernels.implementation import Implementation
from kernels.tests.guarded import Guarded, check
from kernels.tests.problems import skip_unless_available


def pairs(*kernels: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("implementation", "dtype"),
        [
            pytest.param(i, dtype, id=f"{kernel}-{i.name}-{str(dtype).removeprefix('torch.')}")
            for kernel in kernels
            for i in registry.implementations(kernel)
            for dtype in i.dtypes
        ],
    )


def run(
    implementation: Implementation, device: torch.device, *inputs: torch.Tensor, offset: int = 0
) -> torch.Tensor:
    skip_unless_available(implementation, device, inputs[0].dtype)
    placed = [Guarded(x.shape, x.dtype, device, offset, x.to(device)) for x in inputs]
    out = Guarded(inputs[0].shape, inputs[0].dtype, device, offset)
    implementation(*(p.tensor for p in placed), out=out.tensor)
    assert out.intact()
    return out.tensor.cpu()


@pairs("relu", "add", "silu", "scale_relu")
def test_nan_stays_where_it_is(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    places = [0, 3, 1023, 1024, 1026]
    x = torch.full((1027,), -1.0, dtype=dtype)
    x[places] = math.nan
    others = [torch.ones_like(x)] * (len(implementation.definition.inputs) - 1)
    for offset in (0, 1):
        found = run(implementation, device, x, *others, offset=offset)
        assert found.isnan().nonzero().flatten().tolist() == places


@pairs("relu", "scale_relu")
def test_minus_zero_becomes_zero_in_head_body_and_tail(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    if not implementation.name.startswith("cuda"):
        pytest.skip("the sign of zero is a policy of our own kernels")
    for n, offset in ((19, 0), (19, 3), (4111, 1)):
        found = run(implementation, device, torch.full((n,), -0.0, dtype=dtype), offset=offset)
        assert not found.signbit().any()


@pairs("relu", "add", "silu", "scale_relu")
def test_a_zero_has_the_references_sign_unless_the_definition_says_why_not(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    """What the measuring suite relies on: it compares signs where no reason stands."""
    meaning = implementation.definition
    signs = [torch.tensor([-0.0, -0.0, 0.0, 0.0]), torch.tensor([-0.0, 0.0, -0.0, 0.0])]
    for n, offset in ((19, 0), (19, 3), (4111, 1)):
        inputs = [s.to(dtype).repeat(n)[:n] for s in signs[: len(meaning.inputs)]]
        found = run(implementation, device, *inputs, offset=offset)
        expected = meaning.reference(*inputs, **meaning.parameters)
        assert not found.any()
        if meaning.either_zero_of(implementation.name) is None:
            assert torch.equal(found.signbit(), expected.signbit())


@pairs("relu")
def test_relu_of_extremes(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    info = torch.finfo(dtype)
    kept = [math.inf, info.max, info.tiny, info.smallest_normal * info.eps]
    x = torch.tensor(kept + [-v for v in kept], dtype=dtype)
    assert x[3] > 0
    found = run(implementation, device, x)
    assert found.tolist() == [*x[:4].tolist(), 0.0, 0.0, 0.0, 0.0]


@pairs("scale_relu")
def test_a_subnormal_product_is_not_flushed(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    info = torch.finfo(dtype)
    x = torch.full((9,), info.smallest_normal, dtype=dtype, device=device)
    found = implementation(x, scale=0.5)
    assert found.double().tolist() == [info.smallest_normal / 2] * 9


@pairs("add")
def test_sums_of_subnormals_are_exact(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    x = torch.full((11,), least, dtype=dtype)
    assert run(implementation, device, x, x).double().tolist() == [2 * least] * 11


@pairs("add")
def test_ieee_sums_of_zeros_and_infinities(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    a = torch.tensor([math.inf, math.nan, -0.0, -0.0, 1.0, math.inf], dtype=dtype)
    b = torch.tensor([-math.inf, 1.0, -0.0, 0.0, -1.0, math.inf], dtype=dtype)
    found = run(implementation, device, a, b)
    assert found[:2].isnan().all()
    assert found[2:].tolist() == [0.0, 0.0, 0.0, math.inf]
    assert found[2:5].signbit().tolist() == [True, False, False]


@pairs("add")
def test_half_overflow_and_ties(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    if dtype != torch.float16:
        pytest.skip("the values are those of fp16")
    a = torch.tensor([65504.0, 65504.0, 2048.0, 2048.0], dtype=dtype)
    b = torch.tensor([16.0, 15.98, 1.0, 3.0], dtype=dtype)
    assert run(implementation, device, a, b).tolist() == [math.inf, 65504.0, 2048.0, 2052.0]


@pairs("add")
def test_half_sums_round_as_numpy_does_at_every_exponent(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    if dtype != torch.float16:
        pytest.skip("NumPy has fp16")
    exponents = np.arange(1, 30, dtype=np.uint16)
    mantissas = np.array([0, 1, 2, 511, 512, 1022, 1023], dtype=np.uint16)
    large = (exponents[:, None] << 10 | mantissas).ravel().view(np.float16)
    halves = 2.0 ** (np.arange(-26.0, 5.0)) * np.array([[1.0], [1.0009765625], [1.5], [-1.0]])
    small = halves.ravel().astype(np.float16)
    a, b = (m.ravel().copy() for m in np.meshgrid(large, small))
    with np.errstate(over="ignore"):
        expected = a + b
    found = run(implementation, device, torch.from_numpy(a), torch.from_numpy(b))
    assert found.numpy().tobytes() == expected.tobytes()


@pairs("relu", "add")
def test_rows_that_are_rarely_aligned(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    for length in (3420, 1710, 3421):
        whole = torch.randn(5, length, device=device).to(dtype)
        expected = implementation.definition.reference(
            *[whole] * len(implementation.definition.inputs)
        )
        for row in range(5):
            inputs = [whole[row]] * len(implementation.definition.inputs)
            found = implementation(*inputs)
            assert torch.equal(found, expected[row].to(dtype))


@pairs("relu")
def test_two_columns_of_a_slice(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    x = torch.tensor([[-1.0, 2.0, -3.0]], dtype=dtype, device=device)
    assert implementation(x[:, 1:]).tolist() == [[2.0, 0.0]]


@pairs("add")
def test_doubling_in_place_doubles_once(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    for n in (3, 7, 1027, 4099):
        x = torch.arange(n, device=device).remainder(100).to(dtype)
        expected = x * 2
        assert torch.equal(implementation(x, x, out=x), expected)


@pairs("silu")
def test_silu_keeps_its_stated_error_over_its_whole_range(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    x = torch.linspace(-120, 120, 40_001, device=device).to(dtype)
    expected = implementation.definition.reference(x)
    bound = implementation.definition.bound(None, (x,))  # type: ignore[arg-type]
    check(implementation, [x], expected, bound)


def test_our_silu_is_within_five_units_in_fp32(device: torch.device) -> None:
    implementation = registry.get("silu", "cuda_vector")
    skip_unless_available(implementation, device, torch.float32)
    x = torch.linspace(-80, 80, 200_001, device=device)
    expected = implementation.definition.reference(x)
    error = (implementation(x).double() - expected).abs()
    assert (error <= 5 * 2.0**-23 * expected.abs()).all()
