"""Inputs from a seed at any alignment, and the checks on arguments that all share."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from kernels.cases import Case, Scalar

VECTOR_BYTES = 16
NORMAL = "standard normal"
_DEFAULT_STREAMS = (0, 1)  # the null stream's handles: none, and cudaStreamLegacy
Check = Callable[[Sequence[torch.Tensor], torch.Tensor | None, Mapping[str, Scalar]], torch.Tensor]


def empty_at(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device | str, offset: int = 0
) -> torch.Tensor:
    """Return an unset contiguous tensor `offset` elements past a 16-byte boundary."""
    count = torch.Size(shape).numel()
    slack = VECTOR_BYTES // dtype.itemsize
    buffer = torch.empty(count + offset + slack, dtype=dtype, device=device)
    start = (-buffer.data_ptr() % VECTOR_BYTES) // dtype.itemsize + offset
    return buffer[start : start + count].view(shape)


def make_inputs(case: Case, device: torch.device | str, seed: int) -> tuple[torch.Tensor, ...]:
    """Return the inputs of a case at its offsets, the same for the same seed and device type."""
    from kernels.registry import definition

    generator = torch.Generator(device=device).manual_seed(seed)
    return definition(case.kernel).make_inputs(case, torch.device(device), generator)


def normal_inputs(
    case: Case, device: torch.device, generator: torch.Generator, count: int
) -> tuple[torch.Tensor, ...]:
    """Return `count` inputs, `NORMAL` by name, of the case's shape and dtype."""
    offsets = case.input_offsets[:count] or (0,) * count
    return tuple(
        empty_at(case.shape, case.torch_dtype, device, offset).normal_(generator=generator)
        for offset in offsets
    )


def as_tensor(value: Any, what: str) -> torch.Tensor:
    """Return a plain torch tensor on the memory of a tensor, a CuPy or a NumPy array: no copy.

    Raises ValueError naming what came when it is neither, or when its layout has no torch view.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().as_subclass(torch.Tensor)
    if not hasattr(value, "__dlpack__"):
        raise ValueError(
            f"{what} is a {type(value).__name__}; expected a torch tensor or a CuPy or NumPy array"
        )
    if any(stride < 0 for stride in getattr(value, "strides", None) or ()):
        # torch would abort the process instead of raising.
        raise ValueError(
            f"{what}: this {type(value).__name__} cannot be used without a copy: its strides are "
            f"{tuple(value.strides)}; expected a contiguous array"
        )
    try:
        return from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{what}: this {type(value).__name__} cannot be used without a copy: {error}"
        ) from error


def stream_of(values: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a context in which torch works on CuPy's current stream, if one is CuPy's array.

    Who computes with CuPy expects the result in the order of CuPy's stream, which torch's is not.
    """
    for value in values:
        if type(value).__module__.partition(".")[0] == "cupy":
            index = value.device.id
            handle = sys.modules["cupy"].cuda.get_current_stream(index).ptr
            if handle in _DEFAULT_STREAMS:  # torch would take one of its own for a handle of 0
                return torch.cuda.stream(torch.cuda.default_stream(index))
            return torch.cuda.stream(torch.cuda.ExternalStream(handle, device=index))
    return nullcontext()


def like(array: Any, tensor: torch.Tensor) -> Any:
    """Return `tensor` as an array of the library of `array`, on the same memory."""
    library = sys.modules[type(array).__module__.partition(".")[0]]
    return library.from_dlpack(tensor)


def told(tensor: torch.Tensor) -> str:
    """Return what an error says of a tensor: shape, dtype, device and, when odd, its strides."""
    text = f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
    return text if tensor.is_contiguous() else f"{text} with strides {list(tensor.stride())}"


def expect(condition: bool, kernel: str, name: str, tensor: torch.Tensor, expected: str) -> None:
    """Raise ValueError naming what came and what was expected, unless `condition` holds."""
    if not condition:
        raise ValueError(f"{kernel}: {name} is {told(tensor)}; expected {expected}")


def refuse_overlap(kernel: str, name: str, tensor: torch.Tensor, out: torch.Tensor) -> None:
    """Raise ValueError when `out` shares a part of the memory of `tensor`; all is in place."""
    first, second = tensor.data_ptr(), out.data_ptr()
    size, out_size = tensor.numel() * tensor.element_size(), out.numel() * out.element_size()
    if not size or not out_size or (first == second and size == out_size):
        return
    if first < second + out_size and second < first + size:
        raise ValueError(
            f"{kernel}: out overlaps {name} by a part ({second - first:+d} bytes); "
            "expected the same memory (in place) or separate memory"
        )


def elementwise_check(kernel: str, names: Sequence[str], dtypes: Sequence[torch.dtype]) -> Check:
    """Return the check of a kernel whose inputs and output share shape, dtype and device."""
    allowed = frozenset(dtypes)
    listed = ", ".join(str(d).removeprefix("torch.") for d in dtypes)

    def explain(inputs: Sequence[torch.Tensor], out: torch.Tensor | None) -> None:
        first = inputs[0]
        expect(first.is_cuda or first.is_cpu, kernel, names[0], first, "a CUDA or CPU tensor")
        expect(first.dtype in allowed, kernel, names[0], first, f"a dtype of {listed}")
        same = f"{told(first.detach())} as {names[0]}" if first.is_contiguous() else ""
        for name, tensor in (
            *zip(names, inputs, strict=True),
            *((("out", out),) if out is not None else ()),
        ):
            expect(
                tensor.is_contiguous(),
                kernel,
                name,
                tensor,
                "a contiguous tensor; call .contiguous()",
            )
            fits = tensor.dtype is first.dtype and tensor.shape == first.shape
            expect(fits and tensor.device == first.device, kernel, name, tensor, same)
        if out is not None:
            for name, tensor in zip(names, inputs, strict=True):
                refuse_overlap(kernel, name, tensor, out)

    def check(
        inputs: Sequence[torch.Tensor],
        out: torch.Tensor | None,
        _parameters: Mapping[str, Scalar],
    ) -> torch.Tensor:
        # The usual call passes on plain comparisons; words are looked for only when one fails.
        first = inputs[0]
        here = first.is_cuda or first.is_cpu
        fits = here and first.dtype in allowed and first.is_contiguous()
        if fits and _alike(first, inputs[1:]):
            if out is None:
                return torch.empty_like(first)
            if _alike(first, (out,)) and _apart(inputs, out):
                return out
        explain(inputs, out)
        raise AssertionError("an argument was refused without a reason")

    return check


def _alike(first: torch.Tensor, others: Sequence[torch.Tensor]) -> bool:
    """Return whether all `others` are contiguous, with the dtype, device and shape of `first`."""
    dtype, device, shape = first.dtype, first.device, first.shape
    for other in others:
        if (
            other.dtype is not dtype
            or not other.is_contiguous()
            or other.device != device
            or other.shape != shape
        ):
            return False
    return True


def _apart(inputs: Sequence[torch.Tensor], out: torch.Tensor) -> bool:
    """Return whether `out` is each input's very memory or none of it; all have one size."""
    start, size = out.data_ptr(), out.nbytes
    for tensor in inputs:  # noqa: SIM110 - a generator costs a frame on every launch
        if 0 < abs(tensor.data_ptr() - start) < size:
            return False
    return True
