"""One cell of the roof study: everything in it checked by the chain, then timed in random turns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import hypot, prod
from typing import TYPE_CHECKING

from perftests.studies.roof_cells import OURS, Cell
from perftests.studies.turns import Turned, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from kernels.cases import Case
    from perftests.harness.session import Bench, Session
    from perftests.harness.workload import Inputs, Workload

TURNS_S = 0.05
"""Wall time of each candidate's turns together; large launches take a little more."""
VECTOR_BYTES = 16
ALIGNED = "aligned"
DRIVER = "driver"


@dataclass(frozen=True)
class Ratio:
    """A quotient of two times with its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Measured:
    """Times by implementation, failures by implementation, and the copies' times beside them.

    `copied` are the bytes that each copy moves in all; `aligned` is our time on one element more.
    """

    times: Mapping[str, Turned]
    failures: Mapping[str, str]
    moved: int
    copied: int
    copies: Mapping[str, Turned] = field(default_factory=dict)
    aligned: Turned | None = None

    @property
    def copy_source(self) -> str:
        """The fastest copy."""
        return min(self.copies, key=lambda name: self.copies[name].seconds)

    @property
    def copy_bytes_per_s(self) -> float:
        """The rate of the fastest copy."""
        return self.copied / self.copies[self.copy_source].seconds

    def of_copy(self, name: str, source: str | None = None) -> Ratio:
        """Return an implementation's rate over the fastest copy's, or over that of `source`."""
        ratio = ratio_of(self.copies[source or self.copy_source], self.times[name])
        scale = self.moved / self.copied
        return Ratio(ratio.value * scale, ratio.error * scale)


def ratio_of(above: Turned, below: Turned) -> Ratio:
    """Return the quotient of two times; their errors are independent."""
    value = above.seconds / below.seconds
    relative = hypot(above.error_s / above.seconds, below.error_s / below.seconds)
    return Ratio(value, value * relative)


def measure_cell(cell: Cell, session: Session) -> Measured:
    """Measure every implementation of a cell that runs here."""
    import torch

    device = torch.device("cuda", 0)
    works, failures = _trusted(cell, session, device)
    if OURS not in works:
        return Measured({}, failures, 0, 0)
    moved = works[OURS].bytes_moved
    copied = copied_bytes(cell, moved)
    bench = session.bench(device)
    with bench.lock.alone(), bench.device.stream():
        times, copied = _timed(cell, works, copied, session, bench)
    copies = {name: t for (kind, name), t in times.items() if kind == "copy"}
    return Measured(
        {name: t for (kind, name), t in times.items() if kind == "kernel"},
        failures,
        moved,
        copied,
        copies,
        times.get((ALIGNED, OURS)),
    )


def _trusted(
    cell: Cell, session: Session, device: torch.device
) -> tuple[dict[str, Workload], dict[str, str]]:
    """Return what went through the chain of trust, and why the rest did not."""
    from kernels.registry import get
    from perftests.harness.chain import measure
    from perftests.suite import workload

    works: dict[str, Workload] = {}
    failures: dict[str, str] = {}
    for name in cell.names:
        implementation = get(cell.case.kernel, name)
        reason = implementation.unavailable(device, cell.case.torch_dtype)
        if reason is None:
            work = workload(implementation, cell.case, device)
            broken = measure(work, session).broken
            reason = None if broken is None else str(broken)
        if reason is None:
            works[name] = work
        else:
            failures[name] = reason
    return works, failures


def _timed(
    cell: Cell, works: Mapping[str, Workload], copied: int, session: Session, bench: Bench
) -> tuple[dict[tuple[str, str], Turned], int]:
    """Return the times of all candidates and the bytes that a copy among them moves.

    All run on the same memory, copies too where an input is as large as the output, and an odd
    length beside one element more: where arrays lie moves a time by half a percent and more.
    """
    from kernels.registry import get
    from perftests.harness.calibrate import copy_launches
    from perftests.suite import workload

    launches: dict[tuple[str, str], list[Callable[[], object]]] = {}
    if cell.goal is not None and ALIGNED in cell.goal.of:
        longer = workload(get(cell.case.kernel, OURS), _longer(cell.case), bench.device.device)
        inputs, output = _placed(longer, session)
        launches[ALIGNED, OURS] = [partial(longer.launch, inputs, output)]
        inputs, output = tuple(x[:-1] for x in inputs), output[:-1]
    else:
        inputs, output = _placed(works[OURS], session)
    launches |= {
        ("kernel", name): [partial(work.launch, inputs, output)] for name, work in works.items()
    }
    source, target = _copied(inputs[0], output, copied)
    copies = copy_launches(bench.device, source, target)  # type: ignore[arg-type]
    launches |= {("copy", name): [launch] for name, launch in copies.items()}
    return in_turns(bench, launches, TURNS_S), 2 * (source.nbytes // VECTOR_BYTES * VECTOR_BYTES)


def _placed(work: Workload, session: Session) -> tuple[Inputs, torch.Tensor]:
    """Return the inputs, with their values, and the output of a workload in memory of their own."""
    from perftests.harness.buffers import allocate

    values = session.oracle.truth(work, session.settings.seed).values
    buffers = allocate(work, values)
    buffers.load(values)
    return buffers.input_tensors, buffers.output_tensor


def _copied(
    source: torch.Tensor, target: torch.Tensor, copied: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a copy reads and writes: the kernels' own arrays, or two of half the bytes."""
    import torch

    aligned = not (source.data_ptr() % VECTOR_BYTES or target.data_ptr() % VECTOR_BYTES)
    if aligned and source.nbytes == target.nbytes:
        return source, target
    each = copied // 2 // VECTOR_BYTES * VECTOR_BYTES
    arrays = [torch.rand(each // 4, device=source.device) for _ in range(2)]
    return arrays[0], arrays[1]


def _longer(case: Case) -> Case:
    return replace(case, shape=(case.shape[0] + 1, *case.shape[1:]))


def copied_bytes(cell: Cell, moved: int) -> int:
    """Return the bytes that the copy beside a cell moves: those of an array of the same size.

    A kernel of one input moves as many itself; one of several is set against the copy of one.
    """
    from kernels.registry import definition

    several = len(definition(cell.case.kernel).inputs) > 1
    return 2 * prod(cell.case.shape) * cell.case.torch_dtype.itemsize if several else moved
