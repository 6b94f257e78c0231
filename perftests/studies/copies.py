"""Copies between host and device against the kernels that they feed."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels.cases import MIB, Case
from kernels.registry import get
from perftests.studies.copies_report import (
    BOTH,
    IN,
    OUT,
    UNITS,
    Copied,
    copy_rows,
    draw,
    kernel_rows,
    overlap_row,
    verdict,
)
from perftests.studies.frame import Findings, Scope, Study, attempted, measured_rows, missing
from perftests.studies.kept import Timed, keep
from perftests.studies.movers import (
    PAGEABLE,
    PINNED,
    STREAMS,
    CpuMover,
    GpuMover,
    Mover,
    Work,
    ends,
    sample,
)
from perftests.studies.tables import Row, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.session import Bench

SIZES_MIB, SMALL_MIB = (1, 16, 256), (1, 4)
KERNELS = ("relu", "fused_transform")
CHUNKS = 16
_PIXELS = 512
_GENERATION_BYTES_PER_S = {
    3: 8e9 / 8 * 128 / 130,
    4: 16e9 / 8 * 128 / 130,
    5: 32e9 / 8 * 128 / 130,
    6: 64e9 / 8 * 242 / 256,
}
"""A lane of PCIe in one direction, coding taken off (PCI-SIG, base specifications 3.0 to 6.0)."""
CLAIM = (
    "Host-to-device and device-to-host copies dwarf the kernel, so that they must be measured "
    'apart from it. Source: the article "Performance model and elementwise optimisation" (vector '
    "add), which publishes no ratio."
)


def run(scope: Scope) -> Findings:
    """Measure copies, the kernels beside them, and the way to overlap."""
    sizes = SMALL_MIB if scope.small else SIZES_MIB
    bench = scope.session.bench(scope.device)
    mover: Mover = GpuMover(bench) if scope.gpu else CpuMover()
    link = link_bytes_per_s(bench) if scope.gpu else None
    kernels = _kernel_seconds(scope, sizes)
    with ExitStack() as stack:
        stack.enter_context(bench.lock.alone())
        stack.enter_context(bench.device.stream())
        copied = [_copied(scope, mover, mib, memory) for mib in sizes for memory in mover.memories]
        overlap = attempted("On the way to overlap", lambda: _overlap(scope, mover, sizes[-1]))
    rows = copy_rows(copied, link)
    beside = kernel_rows(copied, kernels)
    sections = (
        Section("Copies", _how(scope, link), rows, UNITS),
        Section("Beside the kernel", _BESIDE, beside, UNITS),
        overlap,
        *([] if scope.gpu else [missing("Pinned memory", "a CPU has no memory to copy it to")]),
    )
    told = verdict(rows, beside, measured_rows(overlap), gpu=scope.gpu)
    return Findings(sections, told, lambda figure: draw(figure, rows, beside))


def _copied(scope: Scope, mover: Mover, mib: int, memory: str) -> Copied:
    """Time and check the copies of one size, and keep them for the store."""
    made = ends(mover, mib * MIB, memory)
    works: dict[str, list[Work]] = {
        IN: [made.copy_in],
        OUT: [made.copy_out],
        BOTH: [made.copy_in, made.copy_out],
    }
    found: dict[str, list[float]] = {}
    wrongs = []
    for direction, each in works.items():
        made.poison()
        seconds = sample(mover, memory, each)
        wrong = made.wrong(inwards=direction != OUT, outwards=direction != IN)
        wrongs.append(wrong)
        found[direction] = seconds
        keep(
            scope,
            Timed(
                kernel=direction,
                implementation=memory,
                dtype="uint8",
                shape=(mib * MIB,),
                seconds=seconds,
                timer=mover.timer(memory),
                passed=wrong is None,
                detail=wrong,
                bytes_moved=mib * MIB * len(each),
                source_file="perftests/studies/copies.py",
            ),
        )
    return Copied(mib, memory, found, next(filter(None, wrongs), None))


def case_of(kernel: str, mib: int) -> Case:
    """Return the fp32 case of a kernel whose input has `mib` MiB, images by whole rows."""
    if kernel != "fused_transform":
        return Case(kernel, "float32", (mib * MIB // 4,))
    rows = round(mib * MIB / (_PIXELS * 3 * 4))
    return Case(kernel, "float32", (1, rows, _PIXELS, 3), (), 0, {"transform": "imagenet_ycbcr"})


def _kernel_seconds(scope: Scope, sizes: Sequence[int]) -> dict[tuple[str, int], float]:
    """Return the median of each kernel at each size, through the chain of trust."""
    from perftests.suite import workload

    # On a CPU the vector kernel of the transform is an exercise in fibers, far from its speed.
    name = "cuda_vector" if scope.gpu else "cuda_scalar"
    found = {}
    for kernel in KERNELS:
        for mib in sizes:
            problem = workload(get(kernel, name), case_of(kernel, mib), scope.device)
            found[kernel, mib] = median(scope.measure(problem).seconds)
    return found


def _overlap(scope: Scope, mover: Mover, mib: int) -> Section:
    """Time copy in, ReLU, copy out in several ways, up to chunks in several streams."""
    rows: list[Row] = []
    for memory in mover.memories:
        trip = Trip(mover, mib * MIB // 4, memory)
        steps = [median(sample(mover, memory, [step])) for step in trip.steps(trip.whole)]
        for chunks in (1,) if memory == PAGEABLE and scope.gpu else (1, CHUNKS):
            trip.host_out.fill_(-1)
            seconds = sample(mover, memory, trip.works(chunks))
            rows.append(overlap_row(memory, chunks, seconds, steps, right=trip.is_right()))
    how = (
        f"{mib} MiB copied in, ReLU, copied out; in one piece, then in chunks over "
        f"{STREAMS} {'streams' if scope.gpu else 'threads'}; possible is the longest of the three "
        "steps, each timed alone; overlap is the part that was gained of what could be"
    )
    return Section("On the way to overlap", how, rows, UNITS)


class Trip:
    """Data that is copied in, goes through ReLU and is copied out."""

    def __init__(self, mover: Mover, count: int, memory: str) -> None:
        self.whole = slice(0, count)
        self.host_in = mover.host(count, torch.float32, memory)
        self.host_in.copy_(torch.linspace(-1, 1, count))
        self.host_out = mover.host(count, torch.float32, memory)
        self._x, self._y = mover.device(count, torch.float32), mover.device(count, torch.float32)
        self._relu = get("relu", "cuda_vector")
        self._async = memory == PINNED

    def steps(self, part: slice) -> tuple[Work, Work, Work]:
        """Return copy in, kernel and copy out of a part."""
        source, x, y, target = (
            tensor[part] for tensor in (self.host_in, self._x, self._y, self.host_out)
        )
        return (
            partial(x.copy_, source, non_blocking=self._async),
            partial(self._relu, x, out=y),
            partial(target.copy_, y, non_blocking=self._async),
        )

    def works(self, chunks: int) -> list[Work]:
        """Return the trip of each chunk: its three steps in order."""
        size = -(-self.whole.stop // chunks)
        parts = [slice(first, first + size) for first in range(0, self.whole.stop, size)]
        return [partial(_one_after_other, self.steps(part)) for part in parts]

    def is_right(self) -> bool:
        """Return whether what came out is the ReLU of what went in."""
        return torch.equal(self.host_out, self.host_in.clamp_min(0))


def _one_after_other(steps: Sequence[Work]) -> None:
    for step in steps:
        step()


def link_bytes_per_s(bench: Bench) -> tuple[str, float] | None:
    """Return the link's name and rate in one direction as NVML reports it, None where unknown."""
    generation = bench.watch.ask("nvmlDeviceGetMaxPcieLinkGeneration")
    width = bench.watch.ask("nvmlDeviceGetMaxPcieLinkWidth")
    lane = _GENERATION_BYTES_PER_S.get(generation or 0)
    if lane is None or not width:
        return None
    return f"PCIe {generation} x{width}", lane * width


def _how(scope: Scope, link: tuple[str, float] | None) -> str:
    if not scope.gpu:
        return "From host to host, since there is no device; medians on the host clock"
    told = (
        f"the link is {link[0]}, {link[1] / 1e9:.1f} GB/s a direction" if link else "link unknown"
    )
    return (
        "Medians; pinned by events behind a held stream, pageable on the host clock, its two "
        "directions in a thread each; overlap is the part of the shorter direction that the longer "
        f"hides; what arrived was compared byte by byte; as NVML reports, {told}"
    )


_BESIDE = (
    "The kernel is our cuda_vector (on a CPU cuda_scalar) in fp32 on data of the size copied, L2 "
    "cold, through the chain of trust; there and back is a copy in and a copy out"
)
STUDY = Study("copies", "Copies against kernels", CLAIM, run)
