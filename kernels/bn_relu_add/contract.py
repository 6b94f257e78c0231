"""Arguments, inputs, cost and cases of batch norm, residual and ReLU."""

from collections.abc import Mapping, Sequence
from math import prod

import torch

from kernels.cases import MIB, TIERS, Case, Scalar
from kernels.cost import Cost
from kernels.definition import FLOATS
from kernels.inputs import NORMAL, elementwise_check, empty_at, expect, normal_inputs

NAME = "bn_relu_add"
LAYOUTS = ("nhwc", "nchw")
DISTRIBUTION = f"{NORMAL}; scale uniform in [0.5, 1.5)"
# A launch counts elements in 32 bits; larger batches are cut between images.
MOST_IN_LAUNCH = 1 << 31

_check_data = elementwise_check(NAME, ("x", "residual"), FLOATS)


def channels(shape: Sequence[int], layout: str) -> int:
    """Return C of a 4-dimensional shape in a layout."""
    return shape[3] if layout == "nhwc" else shape[1]


def check(
    inputs: Sequence[torch.Tensor], out: torch.Tensor | None, parameters: Mapping[str, Scalar]
) -> torch.Tensor:
    """Refuse arguments that do not fit; return the output."""
    x, _residual, scale, shift = inputs
    layout = parameters.get("layout", "nhwc")
    if layout not in LAYOUTS:
        raise ValueError(f"{NAME}: layout is {layout!r}; expected nhwc or nchw")
    shape = x.shape
    expect(len(shape) == 4, NAME, "x", x, f"4 dimensions, {layout}")
    count = shape[3] if layout == "nhwc" else shape[1]
    device = x.device
    for name, table in (("scale", scale), ("shift", shift)):
        if (
            table.dtype is not torch.float32
            or table.dim() != 1
            or table.numel() != count
            or table.device != device
            or not table.is_contiguous()
        ):
            expect(False, NAME, name, table, f"[{count}] float32 on {x.device}, contiguous")
    per_image = shape[1] * shape[2] * shape[3]
    expect(per_image < MOST_IN_LAUNCH, NAME, "x", x, "fewer than 2^31 elements an image")
    target = _check_data(inputs[:2], out, parameters)
    if out is not None:
        _refuse_table(out, "scale", scale)
        _refuse_table(out, "shift", shift)
    return target


def _refuse_table(out: torch.Tensor, name: str, table: torch.Tensor) -> None:
    """Raise ValueError when `out` shares memory with a table, which every element reads."""
    distance = out.data_ptr() - table.data_ptr()
    if -out.nbytes < distance < table.nbytes and out.numel():
        raise ValueError(
            f"{NAME}: out overlaps {name} ({distance:+d} bytes); expected separate memory"
        )


def make_inputs(
    case: Case, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return x and the residual at the case's offsets, and scale and shift of a trained look."""
    count = channels(case.shape, str(case.parameters["layout"]))
    x, residual = normal_inputs(case, device, generator, 2)
    scale = empty_at((count,), torch.float32, device).uniform_(0.5, 1.5, generator=generator)
    shift = empty_at((count,), torch.float32, device).normal_(generator=generator)
    return x, residual, scale, shift


def cost(case: Case) -> Cost:
    """Return two reads and one write an element and the tables once; product, two sums, maximum."""
    elements = prod(case.shape)
    tables = 2 * 4 * channels(case.shape, str(case.parameters["layout"]))
    return Cost(3 * elements * case.torch_dtype.itemsize + tables, 4 * elements)


def _shape(images: int, layout: str, count: int, side: int) -> tuple[int, ...]:
    if layout == "nhwc":
        return images, side, side, count
    return images, count, side, side


def cases(device_type: str, tier: str) -> tuple[Case, ...]:
    """Return the cases of a tier: stages of a ResNet, odd planes and odd channel counts."""
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}: the tiers are {', '.join(TIERS)}")
    # (channels, side, bytes of one input or None for two images, offsets, reason)
    problems: list[tuple[int, int, int | None, tuple[int, int], str]]
    if tier == "correctness":
        problems = [
            (64, 8, None, (0, 0), "channels a multiple of the vector"),
            (20, 7, None, (0, 0), "channels a multiple of 4, a plane of 49"),
            (3, 5, None, (1, 0), "everything odd"),
            (12, 7, None, (1, 3), "off differently"),
        ]
    else:
        sizes = {"cpu": (MIB,), "cuda": (16 * MIB, 256 * MIB)}[device_type]
        problems = [(64, 56, nbytes, (0, 0), "first stage of a ResNet-50") for nbytes in sizes]
        if tier == "default":
            problems.append((2048, 7, sizes[-1], (0, 0), "last stage: planes of 49 elements"))
    return tuple(
        _case(problem, layout, dtype, tier)
        for dtype in FLOATS
        for layout in LAYOUTS
        for problem in problems
    )


def _case(
    problem: tuple[int, int, int | None, tuple[int, int], str],
    layout: str,
    dtype: torch.dtype,
    tier: str,
) -> Case:
    count, side, nbytes, (input_offset, output_offset), reason = problem
    images = 2 if nbytes is None else max(1, nbytes // (count * side * side * dtype.itemsize))
    odd = input_offset or output_offset
    return Case(
        kernel=NAME,
        dtype=str(dtype).removeprefix("torch."),
        shape=_shape(images, layout, count, side),
        input_offsets=(input_offset, input_offset, 0, 0) if odd else (),
        output_offset=output_offset,
        parameters={"layout": layout},
        reason=reason,
        tier=tier,
    )
