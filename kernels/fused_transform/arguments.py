"""What a call of the fused transform accepts, and the inputs, outputs and costs of its cases."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch

from kernels.cases import Case
from kernels.cost import Cost
from kernels.fused_transform.layout import Rows, rows_of
from kernels.fused_transform.transform import Transform, transform_of
from kernels.inputs import empty_at, expect, told

DTYPES = (torch.float32, torch.float16, torch.uint8)
OUTPUTS = {"float32": torch.float32, "float16": torch.float16}
KERNEL = "fused_transform"


def output_dtype(source: torch.dtype, name: str) -> torch.dtype:
    """Return the dtype of y: that of x, or for bytes the one that `name` says, float32 when empty.

    Raises ValueError when it is another.
    """
    if name and name not in OUTPUTS:
        raise ValueError(f"{KERNEL}: dtype is {name!r}; expected {' or '.join(OUTPUTS)}")
    if source == torch.uint8:
        return OUTPUTS[name or "float32"]
    if name and OUTPUTS[name] != source:
        raise ValueError(
            f"{KERNEL}: dtype is {name!r} for x of {str(source).removeprefix('torch.')}; "
            "expected the same (only uint8 is converted)"
        )
    return source


def _separate(pitch: int, length: int, image: int, rows: int) -> bool:
    """Return whether `rows` of `length` at `pitch`, repeated at `image`, touch no element twice."""
    return (rows == 1 or pitch >= length) and (image == 0 or image >= (rows - 1) * pitch + length)


def _writes_once(rows: Rows, channels: int) -> bool:
    length = rows.pixels * channels
    image = rows.y_image if rows.images > 1 else 0
    nested = rows.images == 1 or image > 0
    swapped = _separate(image, length, rows.y_pitch, rows.images) and rows.y_pitch > 0
    return nested and (_separate(rows.y_pitch, length, image, rows.rows) or (image > 0 and swapped))


def span_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes from a tensor's first element to the end of its last."""
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return (last + 1) * tensor.element_size()


def _refuse_overlap(x: torch.Tensor, out: torch.Tensor) -> None:
    same = x.dtype == out.dtype and x.data_ptr() == out.data_ptr() and x.shape == out.shape
    if same and x.stride() == out.stride():
        return
    distance = out.data_ptr() - x.data_ptr()
    expect(
        distance >= span_bytes(x) or -distance >= span_bytes(out), KERNEL, "out", out,
        f"memory apart from x ({told(x)}), or x itself when it has the same shape and dtype",
    )  # fmt: skip


def _check_out(x: torch.Tensor, out: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    dtype = OUTPUTS.get(name, out.dtype) if x.dtype == torch.uint8 else x.dtype
    fits = out.shape == shape and out.device == x.device
    wanted = dtype if dtype in OUTPUTS.values() else torch.float32
    expect(
        fits and out.dtype == wanted, KERNEL, "out", out,
        f"{list(shape)} {str(wanted).removeprefix('torch.')} on {x.device}",
    )  # fmt: skip
    if not out.numel():
        return
    rows = rows_of(x.shape, x.stride(), out.stride(), (x.shape[-1], shape[-1]))
    expect(
        rows is not None, KERNEL, "x", x,
        f"rows of whole pixels at one or two pitches that out ({told(out)}) has too; "
        "call .contiguous()",
    )  # fmt: skip
    if not out.is_contiguous():
        expect(
            rows is not None and _writes_once(rows, shape[-1]),
            KERNEL,
            "out",
            out,
            "no element twice",
        )
    _refuse_overlap(x, out)


def check(
    inputs: Sequence[torch.Tensor], out: torch.Tensor | None, parameters: Mapping[str, Any]
) -> torch.Tensor:
    """Return the output of a call, allocated when `out` is None.

    x is [..., C]; its rows of pixels may have a pitch. Raises ValueError naming what came and what
    was expected.
    """
    (x,) = inputs
    transform = transform_of(parameters.get("transform"))
    name = parameters.get("dtype", "")
    listed = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
    expect(x.is_cuda or x.is_cpu, KERNEL, "x", x, "a CUDA or CPU tensor")
    expect(x.dtype in DTYPES, KERNEL, "x", x, f"a dtype of {listed}")
    channels = transform.channels_in
    expect(
        x.dim() > 0 and x.shape[-1] == channels, KERNEL, "x", x,
        f"[..., {channels}] for a transform of {channels} to {transform.channels_out} channels",
    )  # fmt: skip
    shape = (*x.shape[:-1], transform.channels_out)
    dtype = output_dtype(x.dtype, name)
    target = torch.empty(shape, dtype=dtype, device=x.device) if out is None else out
    if (
        out is not None
        and out.dtype is dtype
        and out.shape == shape
        and out.device == x.device
        and x.is_contiguous()
        and out.is_contiguous()
    ):
        distance = out.data_ptr() - x.data_ptr()
        apart = distance >= x.nbytes or -distance >= out.nbytes
        if apart or (distance == 0 and dtype is x.dtype and shape == x.shape):
            return target
    if out is not None or not x.is_contiguous():
        _check_out(x, target, shape, name)
    return target


def _transform(case: Case) -> Transform:
    return transform_of(case.parameters.get("transform"))  # type: ignore[arg-type]


def output(case: Case) -> tuple[tuple[int, ...], torch.dtype]:
    """Return shape and dtype of a case's output."""
    dtype = output_dtype(case.torch_dtype, str(case.parameters.get("dtype", "")))
    return (*case.shape[:-1], _transform(case).channels_out), dtype


def make_inputs(
    case: Case, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return one batch of images: every byte value, or [0, 1)."""
    offset = case.input_offsets[0] if case.input_offsets else 0
    x = empty_at(case.shape, case.torch_dtype, device, offset)
    if x.dtype == torch.uint8:
        return (x.random_(0, 256, generator=generator),)
    return (x.uniform_(generator=generator),)


def distribution(case: Case) -> str:
    """Return in words what `make_inputs` draws."""
    return "every byte alike" if case.torch_dtype == torch.uint8 else "uniform in [0, 1)"


def cost(case: Case) -> Cost:
    """Return the cost of a case: x read, y written, C multiply-adds an output from the bias on."""
    transform = _transform(case)
    pixels = prod(case.shape[:-1])
    shape, dtype = output(case)
    moved = prod(case.shape) * case.torch_dtype.itemsize + prod(shape) * dtype.itemsize
    flop = 2 * transform.channels_in * transform.channels_out * pixels
    return Cost(moved, flop)
