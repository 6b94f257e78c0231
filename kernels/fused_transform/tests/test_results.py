"""Every implementation against float64: lengths, alignments, layouts, guards and poison."""

import math
from itertools import product

import pytest
import torch

from kernels.compare import compare
from kernels.fused_transform import DEFINITION, PRESETS, Transform
from kernels.fused_transform.tests.flavours import (
    FLAVOURS,
    IMPLEMENTATIONS,
    OTHERS,
    OURS,
    TRITON,
    VECTOR,
    Flavour,
    pairs,
)
from kernels.fused_transform.tests.flavours import problem as problem_of
from kernels.implementation import Implementation
from kernels.tests.guarded import check
from kernels.tests.problems import skip_unless_available

WIDTHS = tuple(range(1, 18))
# About the tile of a warp in fp32, fp16 and of two vectors a thread; of a block; of all.
TILES = (*(t + d for t in (32, 64, 128, 256, 512, 1024) for d in (-1, 0, 1)), 2051)


def run(
    implementation: Implementation,
    flavour: Flavour,
    device: torch.device,
    pixels: int,
    offsets: tuple[int, int] = (0, 0),
) -> None:
    part = problem_of(flavour, device).first(pixels)
    check(
        implementation, [part.x], part.expected, part.bound, out_dtype=flavour.target,
        input_offsets=offsets[:1], output_offset=offsets[1], parameters=flavour.parameters,
    )  # fmt: skip


@pairs(implementations=(*IMPLEMENTATIONS, *OURS[-2:]), flavours=FLAVOURS + OTHERS)
def test_widths_and_tails(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    if "compile" in implementation.name:  # a compilation for each width
        return run(implementation, flavour, device, 67)
    for pixels in (*WIDTHS, *TILES):
        run(implementation, flavour, device, pixels)
    return None


@pairs(implementations=OURS, flavours=FLAVOURS + OTHERS)
@pytest.mark.parametrize("pixels", [3, 643])
def test_every_pair_of_offsets(
    implementation: Implementation, flavour: Flavour, pixels: int, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    phases = product(range(16 // flavour.source.itemsize), range(16 // flavour.target.itemsize))
    for x_offset, y_offset in phases:
        run(implementation, flavour, device, pixels, (x_offset, y_offset))


@pairs(implementations=OURS)
@pytest.mark.parametrize("width", [5, 131])
def test_rows_with_a_pitch(
    implementation: Implementation, flavour: Flavour, width: int, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    images, rows = 2, 3
    x = problem_of(flavour, device).x[:, :, : images * rows * (width + 3)]
    x = x.reshape(images, rows, width + 3, 3)[:, :, 1:-2]
    canvas = torch.full((images, rows + 1, width + 7, 3), 7.0, device=device).to(flavour.target)
    out = canvas[:, :-1, 2:-5]
    out.fill_(float("nan"))
    implementation(x, out=out, **flavour.parameters)
    expected = DEFINITION.reference(x, **flavour.parameters)
    bound = DEFINITION.bound(flavour.case(tuple(x.shape)), (x,))
    outcome = compare(out, expected, bound)
    assert outcome.passed, outcome.detail
    out.fill_(7.0)
    assert bool((canvas == 7.0).all()), "wrote between the rows"


@pairs(implementations=(*IMPLEMENTATIONS, *OURS[-2:]), flavours=FLAVOURS[:2])
@pytest.mark.parametrize("offset", [0, 1])
def test_in_place_over_and_over(
    implementation: Implementation, flavour: Flavour, offset: int, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    # A pixel that two programs or two warps share is overwritten under the later one, now and then.
    sizes: tuple[int, ...] = (1, 342, 1025)
    times = 1
    if device.type == "cuda":
        sizes, times = (*sizes, 90_001), 12
    if "compile" in implementation.name:
        sizes = (1025,)
    for pixels in sizes:
        part = problem_of(flavour, device, max(sizes)).first(pixels)
        for _ in range(times):
            flat = torch.empty(part.x.numel() + offset, dtype=flavour.source, device=device)
            x = flat[offset:].view_as(part.x).copy_(part.x)
            assert implementation(x, out=x, **flavour.parameters) is x
            outcome = compare(x, part.expected, part.bound)
            assert outcome.passed, f"{pixels}: {outcome.detail}"


@pairs(implementations=(*OURS, TRITON), flavours=FLAVOURS[:2])
def test_in_place_in_rows_with_a_pitch(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    given = problem_of(flavour, device).x[:, :, : 6 * 300].view(2, 3, 300, 3)[:, :, 1:-2]
    expected = DEFINITION.reference(given, **flavour.parameters)
    bound = DEFINITION.bound(flavour.case(tuple(given.shape)), (given,))
    canvas = torch.full((2, 4, 306, 3), 7.0, device=device).to(flavour.target)
    for _ in range(1 if device.type == "cpu" else 12):
        x = canvas[:, :-1, 2:-7].copy_(given)
        assert implementation(x, out=x, **flavour.parameters) is x
        outcome = compare(x, expected, bound)
        assert outcome.passed, outcome.detail
    x.fill_(7.0)
    assert bool((canvas == 7.0).all()), "wrote between the rows"


@pairs()
def test_without_out_a_new_tensor_comes_back(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    part = problem_of(flavour, device).first(66)
    x = part.x.view(2, 3, 11, 3)
    result = implementation(x, **flavour.parameters)
    assert (result.shape, result.dtype) == (x.shape, flavour.target)
    assert compare(result.view_as(part.expected), part.expected, part.bound).passed
    assert implementation(x[:0], **flavour.parameters).shape == (0, 3, 11, 3)
    assert implementation(x[:, :, :0], **flavour.parameters).shape == (2, 3, 0, 3)


@pairs()
@pytest.mark.parametrize("pixels", [1, 5])
def test_pure_colours(
    implementation: Implementation, flavour: Flavour, pixels: int, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    full = 255 if flavour.source == torch.uint8 else 1
    near = 2e-3 if flavour.target == torch.float16 else 1e-5
    # Y and Cb of the ImageNet-normalised colours, by hand: BT.601's columns.
    luma, blue_difference = (0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5)
    for colour in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0)):
        red, green, blue = (
            (colour[0] - 0.485) / 0.229, (colour[1] - 0.456) / 0.224, (colour[2] - 0.406) / 0.225
        )  # fmt: skip
        x = torch.tensor([colour] * pixels, device=device).mul(full).to(flavour.source)
        y = implementation(x, **flavour.parameters).double().cpu()
        for channel, (r, g, b) in enumerate((luma, blue_difference)):
            value = r * red + g * green + b * blue
            assert y[:, channel].tolist() == pytest.approx([value] * pixels, abs=near)


@pairs(implementations=(*IMPLEMENTATIONS, *OURS[-2:]), flavours=FLAVOURS[:2])
def test_special_values_stay_in_their_pixel(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    info = torch.finfo(flavour.source)
    large = 1e30 if flavour.source == torch.float32 else info.max  # fp16's products overflow it
    specials = [math.nan, math.inf, -math.inf, -0.0, info.tiny * info.eps, large, -large]
    x = problem_of(flavour, device).first(67 if "compile" in implementation.name else 391).x.clone()
    values = torch.tensor(specials, dtype=x.dtype, device=device)
    for first in (0, 29, 60):  # in the head, the body and, from the end, the tail
        for channel in range(3):
            x[0, 0, first + channel : first + len(specials) : 3, channel] = values[channel::3]
    x[0, 0, -1, 0], x[0, 0, -1, 1] = math.inf, math.inf
    expected = DEFINITION.reference(x, **flavour.parameters)
    bound = DEFINITION.bound(flavour.case(tuple(x.shape)), (x,))
    assert 0 < expected.isnan().any(-1).sum() < 8
    check(implementation, [x], expected, bound, parameters=flavour.parameters)


def test_every_byte_value(device: torch.device) -> None:
    for flavour in FLAVOURS[2:]:
        skip_unless_available(VECTOR, device, flavour.source)
        x = torch.arange(256, device=device).to(torch.uint8).view(-1, 1).expand(256, 3).contiguous()
        expected = DEFINITION.reference(x, **flavour.parameters)
        bound = DEFINITION.bound(flavour.case((256, 3)), (x,))
        y = VECTOR(x, **flavour.parameters)
        assert y.dtype is flavour.target
        assert compare(y, expected, bound).passed


def test_more_images_than_a_grid_has_rows(device: torch.device) -> None:
    flavour = FLAVOURS[0]
    skip_unless_available(VECTOR, device, flavour.source)
    x = torch.rand(65_537, 3, 6, 3, device=device)[:, :2, :5]
    out = torch.full_like(x, math.nan, memory_format=torch.contiguous_format)
    VECTOR(x, out=out)
    bound = DEFINITION.bound(flavour.case(tuple(x.shape)), (x,))
    assert compare(out, DEFINITION.reference(x), bound).passed


@pairs(flavours=(FLAVOURS[0],))
def test_bt601_grey_of_the_primaries(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    x = torch.eye(3, device=device) * 255
    grey = implementation(x, transform="grey_bt601")
    assert grey.shape == (3, 1)
    assert grey.flatten().tolist() == pytest.approx([76.245, 149.685, 29.07], abs=1e-4)


@pairs(implementations=OURS, flavours=(FLAVOURS[0],))
def test_reversed_channels_are_reversed_rows_of_the_matrix(
    implementation: Implementation, flavour: Flavour, device: torch.device
) -> None:
    skip_unless_available(implementation, device, flavour.source)
    given = PRESETS[flavour.transform]
    reversed_transform = Transform.of(given.mean[::-1], given.std[::-1], given.matrix[::-1])
    part = problem_of(flavour, device).first(77)
    y = implementation(part.x.flip(-1), transform=str(reversed_transform))
    assert compare(y, part.expected, part.bound).passed


def test_many_channels_take_the_scalar_kernel() -> None:
    device = torch.device("cpu")
    skip_unless_available(VECTOR, device, torch.float32)
    generator = torch.Generator().manual_seed(3)
    matrix = torch.randn(9, 2, generator=generator).tolist()
    flavour = Flavour(
        "", torch.float32, torch.float32, str(Transform.of([0.5] * 9, [2.0] * 9, matrix))
    )
    x = torch.rand(1, 1, 33, 9, generator=generator)
    y = VECTOR(x, **flavour.parameters)
    expected = DEFINITION.reference(x, **flavour.parameters)
    assert compare(y, expected, DEFINITION.bound(flavour.case(tuple(x.shape)), (x,))).passed
