"""Our own kernels on allocations of the very size: what compute-sanitizer looks at.

Every CUDA implementation, dtype and case of the correctness tier, at every alignment of input and
output modulo 16 bytes, in place too, and at sizes that take each number of loads a thread. Data and
references are made on the CPU and copied, so that no kernel but ours runs. A tensor ends where its
allocation ends: with PYTORCH_NO_CUDA_MEMORY_CACHING=1 one byte beyond it is nobody's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch

from kernels import registry
from kernels.cases import Case, cases
from kernels.compare import compare
from kernels.cuda import CudaImplementation, CudaVector
from kernels.inputs import VECTOR_BYTES
from kernels.tiling import BUSY_BYTES, WAVE_BYTES

SEED = 2026
LEAD = 0xFF  # of floats this is a NaN, so it poisons outputs too
ALL_PAIRS_FROM = 64  # elements; what is shorter is tried at a few pairs
FEW_PAIRS = ((0, 0), (1, 0), (1, 1), (2, 3))
# Bytes of the wider side from which a thread takes two loads, one again, and four.
LARGE = (BUSY_BYTES + 48, WAVE_BYTES + 48, 2 * WAVE_BYTES + 48)
Pair = tuple[int, int]


@dataclass
class Exact:
    """Tensors of a device that end where an allocation ends, kept for the next of that size."""

    device: torch.device
    _kept: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)

    def place(
        self, role: str, offset: int, dtype: torch.dtype, shape: Sequence[int], value: Any = None
    ) -> torch.Tensor:
        """Return a tensor `offset` elements past a boundary with `value`, poisoned without."""
        lead = offset * dtype.itemsize
        size = lead + torch.Size(shape).numel() * dtype.itemsize
        whole = self._kept.get((role, size))
        if whole is None:
            whole = self._kept[role, size] = torch.empty(
                size, dtype=torch.uint8, device=self.device
            )
        host = torch.full((size,), LEAD, dtype=torch.uint8)
        if value is not None:
            host[lead:].view(dtype).view(tuple(shape)).copy_(value)
        whole.copy_(host)
        return whole[lead:].view(dtype).view(tuple(shape))

    def lead_intact(self, role: str, offset: int, like: torch.Tensor) -> bool:
        """Return whether the bytes before the tensor of a role are as they were."""
        lead = offset * like.itemsize
        whole = self._kept[role, lead + like.nbytes]
        return bool((whole.cpu()[:lead] == LEAD).all())


@dataclass
class Found:
    """What the launches showed: how many there were, and what was wrong with results."""

    launches: int = 0
    wrong: list[str] = field(default_factory=list)


Group = tuple[CudaImplementation, tuple[Case, ...]]


def _large(implementation: CudaImplementation, case: Case) -> Iterator[Case]:
    """Yield longer cases, for an implementation whose loads a thread follow the size."""
    if isinstance(implementation, CudaVector) and len(case.shape) == 1:
        _, dtype = implementation.definition.output(case)
        wider = max(case.torch_dtype.itemsize, dtype.itemsize)
        for size in LARGE:
            yield replace(case, shape=(size // wider + 1,), reason="loads a thread")


def _of_dtype(implementation: CudaImplementation, dtype: torch.dtype) -> tuple[Case, ...]:
    """Return the correctness tier's problems of a dtype, alignments apart, and the larger ones."""
    found: dict[Any, Case] = {}
    largest: dict[Any, Case] = {}
    for case in cases(implementation.kernel, "cuda", "correctness"):
        if case.torch_dtype == dtype:
            plain = replace(case, input_offsets=(), output_offset=0)
            parameters = tuple(sorted(plain.parameters.items()))
            found[plain.shape, parameters] = plain
            largest[parameters] = plain
    more = [longer for case in largest.values() for longer in _large(implementation, case)]
    return (*found.values(), *more)


def groups(kernels: Iterable[str]) -> list[Group]:
    """Return every CUDA implementation of `kernels` with the cases of each of its dtypes."""
    return [
        (implementation, _of_dtype(implementation, dtype))
        for kernel in kernels
        for implementation in registry.implementations(kernel)
        if isinstance(implementation, CudaImplementation)
        for dtype in implementation.dtypes
    ]


def pairs(case: Case, source: torch.dtype, target: torch.dtype) -> Iterator[Pair]:
    """Yield the offsets of inputs and output, in elements, at which a case is launched."""
    elements = torch.Size(case.shape).numel()
    if not elements:
        yield 0, 0
    elif case.reason == "loads a thread" or elements < ALL_PAIRS_FROM:
        yield from FEW_PAIRS
    else:
        yield from product(
            range(VECTOR_BYTES // source.itemsize), range(VECTOR_BYTES // target.itemsize)
        )


def launches_of(group: Group) -> int:
    """Return about how many launches a group is, in units of one small one."""
    implementation, given = group
    total = 0
    for case in given:
        _, target = implementation.definition.output(case)
        weight = 1 + torch.Size(case.shape).numel() // 20_000
        total += weight * sum(1 for _ in pairs(case, case.torch_dtype, target))
    return total


def shard(given: Sequence[Group], count: int) -> list[list[Group]]:
    """Return the groups in `count` parts of about the same work."""
    parts: list[list[Group]] = [[] for _ in range(count)]
    work = [0] * count
    for group in sorted(given, key=launches_of, reverse=True):
        least = work.index(min(work))
        parts[least].append(group)
        work[least] += launches_of(group)
    return parts


def run(given: Iterable[Group], device: torch.device) -> Found:
    """Launch all cases of the groups; return how many launches there were and what was wrong."""
    found = Found()
    for implementation, listed in given:
        for case in listed:
            if implementation.unavailable(device, case.torch_dtype):
                continue
            buffers = Exact(device)
            for text in _run_case(implementation, case, buffers, found):
                found.wrong.append(f"{implementation!r} {case.label}: {text}")
    return found


def _run_case(
    implementation: CudaImplementation, case: Case, buffers: Exact, found: Found
) -> Iterator[str]:
    definition = implementation.definition
    generator = torch.Generator().manual_seed(SEED)
    values = definition.make_inputs(case, torch.device("cpu"), generator)
    expected = definition.reference(*values, **case.parameters)
    bound = definition.bound(case, values)
    signs = definition.either_zero_of(implementation.name) is None
    shape, dtype = definition.output(case)
    same = values[0].shape == shape and values[0].dtype == dtype
    for offset, output_offset in pairs(case, values[0].dtype, dtype):
        for in_place in (False, True) if same and offset == output_offset else (False,):
            offsets = [_offset(v, values[0], i, offset, in_place) for i, v in enumerate(values)]
            inputs = [
                buffers.place(str(i), o, v.dtype, v.shape, v)
                for i, (v, o) in enumerate(zip(values, offsets, strict=True))
            ]
            out = inputs[0] if in_place else buffers.place("out", output_offset, dtype, shape)
            implementation(*inputs, out=out, **case.parameters)
            found.launches += bool(out.numel())
            told = f"in+{offsets} out+{output_offset}{' in place' if in_place else ''}"
            outcome = compare(out.cpu(), expected, bound, zero_sign=signs)
            if not outcome.passed:
                yield f"{told}: {outcome.detail}"
            if not buffers.lead_intact("0" if in_place else "out", output_offset, out):
                yield f"{told}: wrote before the output"


def _offset(
    value: torch.Tensor, first: torch.Tensor, place: int, offset: int, in_place: bool
) -> int:
    """Return an input's offset: of tables none; beside an output in place they differ."""
    if value.shape != first.shape:
        return 0
    return (offset + place) % (VECTOR_BYTES // value.itemsize) if in_place else offset
