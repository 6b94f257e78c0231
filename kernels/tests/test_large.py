"""More than 2^31 elements, and more than 2^32: the start, the places where indices wrap, the end."""

import pytest
import torch

from kernels import registry
from kernels.cases import Case
from kernels.compare import compare
from kernels.implementation import Implementation

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU here"),
]
WINDOW = 1 << 16


def windows(n: int) -> list[slice]:
    """Return the ends and both sides of each multiple of 2^31."""
    places = [0, *range(1 << 31, n, 1 << 31), n]
    return [slice(max(0, p - WINDOW), min(n, p + WINDOW)) for p in places]


def need(nbytes: int) -> None:
    free, _ = torch.cuda.mem_get_info()
    if free < nbytes * 1.1:
        pytest.skip(f"{nbytes / 2**30:.0f} GiB of GPU memory needed, {free / 2**30:.0f} free")


def pattern(n: int, dtype: torch.dtype) -> torch.Tensor:
    """Return n values of both signs that differ between places 2^31 and 2^32 apart."""
    x = torch.empty(n, dtype=dtype, device="cuda")
    step = 1 << 28
    for start in range(0, n, step):
        part = x[start : start + step]
        part.copy_(torch.arange(part.numel(), device="cuda").remainder_(251).sub_(125))
        part.add_(start // step)
    return x


@pytest.mark.parametrize("n", [(1 << 31) + 17, (1 << 32) + 3])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for kernel in ("relu", "scale_relu", "silu")
        for i in registry.implementations(kernel)
        if torch.float16 in i.dtypes and i.name != "torch_compile"
    ],
)
def test_unary_kernels_beyond_32_bits(implementation: Implementation, n: int, offset: int) -> None:
    need(2 * 2 * (n + 8))
    torch.cuda.empty_cache()
    x = pattern(n + offset, torch.float16)[offset:]
    out = torch.full_like(x, float("nan"))
    implementation(x, out=out)
    definition = implementation.definition
    case = Case(implementation.kernel, "float16", (n,))
    for window in windows(n):
        part = x[window]
        outcome = compare(
            out[window],
            definition.reference(part, **definition.parameters),
            definition.bound(case, (part,)),
        )
        assert outcome.passed, f"{window}: {outcome.detail}"
    assert not out.isnan().any()
    del x, out
    torch.cuda.empty_cache()


@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for i in registry.implementations("add")
        if torch.float16 in i.dtypes
    ],
)
def test_add_beyond_32_bits(implementation: Implementation) -> None:
    n = (1 << 31) + 17
    need(2 * 2 * n)
    torch.cuda.empty_cache()
    x = pattern(n, torch.float16)
    out = torch.full_like(x, float("nan"))
    implementation(x, x, out=out)
    for window in windows(n):
        assert torch.equal(out[window], x[window] * 2), window
    assert not out.isnan().any()
    del x, out
    torch.cuda.empty_cache()


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_batch_norm_beyond_32_bits(layout: str) -> None:
    implementation = registry.get("bn_relu_add", "cuda_vector")
    shape = (10_701, 56, 56, 64) if layout == "nhwc" else (10_701, 64, 56, 56)
    n = torch.Size(shape).numel()
    assert n > 1 << 31
    need(2 * 2 * n)
    torch.cuda.empty_cache()
    x = pattern(n, torch.float16).view(shape)
    scale, shift = torch.rand(2, 64, device="cuda")
    out = torch.full_like(x, float("nan"))
    implementation(x, x, scale, shift, out=out, layout=layout)
    image = x[0].numel()
    for last in (0, (1 << 31) // image, len(x) - 1):
        part = slice(max(0, last - 2), last + 2)
        alone = implementation(x[part].clone(), x[part].clone(), scale, shift, layout=layout)
        assert torch.equal(out[part], alone)
    assert not out.isnan().any()
    del x, out
    torch.cuda.empty_cache()


def test_conversion_beyond_32_bits() -> None:
    n = (1 << 32) + 3
    need(6 * n)
    torch.cuda.empty_cache()
    x = pattern(n, torch.float16)
    out = torch.full((n,), float("nan"), device="cuda")
    registry.get("convert", "cuda_vector")(x, out=out, to="float32")
    for window in windows(n):
        assert torch.equal(out[window], x[window].float()), window
    del x, out
    torch.cuda.empty_cache()


@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for i in registry.implementations("fused_transform")
        if not i.name.startswith("torch")
    ],
)
def test_fused_transform_beyond_32_bits(implementation: Implementation) -> None:
    pixels = (1 << 32) // 3 + 17
    need(3 * 3 * pixels)
    torch.cuda.empty_cache()
    x = pattern(3 * pixels, torch.uint8).view(pixels, 3)
    out = torch.full((pixels, 3), float("nan"), dtype=torch.float16, device="cuda")
    case = Case(
        "fused_transform",
        "uint8",
        (pixels, 3),
        parameters={"transform": "imagenet_ycbcr_255", "dtype": "float16"},
    )
    implementation(x, out=out, **case.parameters)
    for window in windows(3 * pixels):
        part = slice(window.start // 3, window.stop // 3)
        outcome = compare(
            out[part],
            implementation.definition.reference(x[part], **case.parameters),
            implementation.definition.bound(case, (x[part],)),
        )
        assert outcome.passed, f"{part}: {outcome.detail}"
    assert not out.isnan().any()
    del x, out
    torch.cuda.empty_cache()
