"""Launch shapes: threads a block x 16-byte loads a thread, by dtype and size, and why one wins.

ReLU is compiled for each number of threads and measured in each shape through the chain of trust.
Beside the times stand what each shape keeps in flight (registers, resident blocks, bytes) and,
where Nsight Compute may read them, counters of the winners and the losers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels import build, host, launch
from kernels.cases import MIB, Case
from kernels.cuda import SUFFIX
from kernels.inputs import empty_at
from kernels.registry import get
from kernels.sass import facts
from kernels.tiling import VECTOR_BYTES, tile
from perftests.studies.counted import counters
from perftests.studies.frame import Findings, Study, attempted, of_this_device
from perftests.studies.occupancy import Residency, asked, estimated
from perftests.studies.sweep_blocks import blocks, compiled, told
from perftests.studies.sweep_verdict import COUNTED, draw, extremes, ranked, verdict
from perftests.studies.tables import Row, Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kernels.cuda import Function
    from perftests.harness.workload import Inputs, Workload
    from perftests.studies.frame import Scope

SOURCE = Path(__file__).parent / "sweep.cu"
LAYOUT = "PPqII"
THREADS = (64, 128, 256, 512, 1024)
LOADS = (1, 2, 4, 8)
DTYPES = ("float32", "float16")
SIZES_MIB = (1, 16, 256)
SMALL_THREADS, SMALL_LOADS, SMALL_SIZES_MIB = (64, 128), (1, 2), (1,)
LONG = 12
"""Rows from which a table is folded: the short one above it tells the ends."""
STATIC_ARCH = "sm_90"
"""Whose machine code is read where there is no GPU."""
CLAIM = (
    'Article A ("Elementwise optimisation on a cloud GPU") tries blocks of 128, 256 and 512 '
    'threads; article B ("Elementwise optimisation in practice") goes from 128 to 256 threads and '
    "to 4-8 elements a thread, with 24 registers instead of 32, as a part of its gain. Both expect "
    "the shape of the launch to matter."
)
_UNITS = {"time": "us", "bandwidth": "GB/s", "of copy": "%", "tile": "KiB", "in flight": "KiB"}


@dataclass(frozen=True)
class Shape:
    """Threads a block and 16-byte loads a thread."""

    threads: int
    loads: int

    def name(self, dtype: str) -> str:
        """Return the kernel's name."""
        return f"sweep_x{self.loads}_{SUFFIX[getattr(torch, dtype)]}"

    @property
    def options(self) -> tuple[str, ...]:
        """Return the compiler's options."""
        return (f"-DTHREADS={self.threads}",)

    @property
    def tile(self) -> int:
        """Bytes that a block reads."""
        return self.threads * self.loads * VECTOR_BYTES


@cache
def _module(threads: int, index: int) -> launch.Module:
    return launch.module(SOURCE, index, (f"-DTHREADS={threads}",))


@cache
def function(shape: Shape, dtype: str, device: torch.device) -> Function:
    """Return a shape's kernel on a device, compiled once a number of threads."""
    if device.type == "cpu":
        library = host.Library(SOURCE, shape.options)
        return library.function(shape.name(dtype), LAYOUT, shape.threads)
    module = _module(shape.threads, launch.index_of(device))
    return module.function(shape.name(dtype), LAYOUT, shape.threads)


def bound(
    shape: Shape, x: torch.Tensor, out: torch.Tensor, device: torch.device
) -> Callable[[], None]:
    """Return the launch of a shape on two aligned tensors."""
    size = x.element_size()
    source, target = x.data_ptr(), out.data_ptr()
    loads = (shape.loads,)
    cut = tile([source], target, x.numel(), (size, size), loads, loads, shape.threads)
    kernel = function(shape, str(x.dtype).removeprefix("torch."), device)
    return kernel.bind(cut.blocks, source, target, x.numel(), cut.before, cut.edges)


def shaped(shape: Shape, case: Case, device: torch.device) -> Workload:
    """Return ReLU in one shape as a workload: the suite's, launched otherwise."""
    calls: dict[tuple[int, int], Callable[[], None]] = {}

    def run_shape(inputs: Inputs, out: torch.Tensor) -> None:
        key = (inputs[0].data_ptr(), out.data_ptr())
        call = calls.get(key)
        if call is None:
            call = calls[key] = bound(shape, inputs[0], out, device)
        call()

    print_of = None
    if device.type == "cuda":
        print_of = _module(shape.threads, launch.index_of(device)).cubin.fingerprint
    return replace(
        workload(get("relu", "cuda_vector"), case, device),
        implementation="study_shape",
        launch=run_shape,
        parameters={"threads": shape.threads, "loads": shape.loads},
        fingerprint=print_of,
        source_file="perftests/studies/sweep.cu",
        first_call=None,
        small=None,
    )


def launch_of(dtype: str, mib: int, threads: int, loads: int) -> Callable[[], None]:
    """Return a launch for the counters, on tensors of its own."""
    device = torch.device("cuda", torch.cuda.current_device())
    kind = getattr(torch, dtype)
    x, out = (empty_at((mib * MIB // kind.itemsize,), kind, device) for _ in range(2))
    call = bound(Shape(threads, loads), x.normal_(), out, device)

    def held(_tensors: tuple[torch.Tensor, ...] = (x, out)) -> None:
        call()

    return held


def residencies(shapes: Sequence[Shape], device: torch.device) -> Section:
    """Return what each shape needs and keeps in flight, from the driver or from machine code."""
    gpu = device.type == "cuda"
    arch = launch.arch_of(launch.index_of(device)) if gpu else STATIC_ARCH
    rows: list[Row] = []
    for dtype in DTYPES:
        for shape in shapes:
            cubin = build.compile_cubin(SOURCE, arch, shape.options)
            found = _residency(cubin.code, shape.name(dtype), shape.threads, gpu=gpu)
            rows.append(
                {
                    "dtype": dtype,
                    "threads": shape.threads,
                    "loads": shape.loads,
                    "registers": found.registers,
                    "blocks an SM": found.blocks,
                    "occupancy": found.occupancy,
                    "in flight": found.resident * shape.loads * VECTOR_BYTES,
                }
            )
    how = (
        f"Machine code for {arch}; {'the driver' if gpu else 'the rules of the SM'} says how many "
        "blocks are resident; `in flight` are the bytes that these load at once on an SM"
    )
    units = {"occupancy": "%", "in flight": "KiB"}
    return Section("What a shape keeps in flight", how, rows, units, folded=len(rows) > LONG)


def _residency(code: bytes, name: str, threads: int, *, gpu: bool) -> Residency:
    if gpu:
        return asked(code, name, threads)
    return estimated(_facts_of(code)[name].registers, threads)


_facts_of = cache(facts)


def times(scope: Scope, shapes: Sequence[Shape], sizes_mib: Sequence[int]) -> Section:
    """Measure every shape at every dtype and size."""
    rows: list[Row] = []
    for dtype in DTYPES:
        for mib in sizes_mib:
            case = Case("relu", dtype, (mib * MIB // getattr(torch, dtype).itemsize,))
            for shape in shapes:
                outcome = scope.measure(shaped(shape, case, scope.device))
                seconds = median(outcome.seconds)
                rate = 2 * mib * MIB / seconds
                row: Row = {"dtype": dtype, "MiB": mib, "threads": shape.threads}
                row |= {"loads": shape.loads, "tile": shape.tile, "time": seconds}
                copy = outcome.result["peaks"].get("copy_bytes_per_s") or float("nan")
                rows.append({**row, "bandwidth": rate, "of copy": rate / copy})
    how = "ReLU, cold medians; `tile` is what a block reads; `of copy` over a copy of the same size"
    return Section("Every shape", how, rows, _UNITS, folded=len(rows) > LONG)


def counted_rows(timed: Section) -> Section:
    """Return the counters of the best and the worst shape of each size, fp32."""
    picked = [
        (role, row)
        for (dtype, _), found in extremes(timed.rows).items()
        if dtype == "float32"
        for role, row in zip(("best", "worst"), found, strict=True)
    ]
    keys = ("dtype", "MiB", "threads", "loads")
    specs = [tuple(_word(row[key]) for key in keys) for _, row in picked]
    rows: list[Row] = []
    for (role, row), seen in zip(picked, counters("sweep", specs), strict=True):
        told: Row = {"role": role, **{key: row[key] for key in keys}}
        names = {_short(name): value for name, value in seen.items()}
        told |= {name: value for name in COUNTED if (value := names.get(name)) is not None}
        rows.append(told)
    how = "Nsight Compute, cold caches, one launch each, fp32"
    return Section("Counters of the best and the worst", how, rows)


def _word(value: str | float) -> str | int:
    return value if isinstance(value, str) else int(value)


def _short(counter: str) -> str:
    return counter.replace("_bytes", "").replace("_percent", " %").replace("_", " ")


def run(scope: Scope) -> Findings:
    """Sweep, then say why the winners win."""
    sizes: tuple[int, ...] = SMALL_SIZES_MIB if scope.small else SIZES_MIB
    threads: tuple[int, ...] = SMALL_THREADS if scope.small else THREADS
    loads: tuple[int, ...] = SMALL_LOADS if scope.small else LOADS
    shapes = [Shape(t, u) for t in threads for u in loads]
    if scope.gpu:
        arch = launch.arch_of(launch.index_of(scope.device))
        compiled(SOURCE, arch, sorted({shape.options for shape in shapes}))
    timed = times(scope, shapes, sizes)
    held = attempted("What a shape keeps in flight", partial(residencies, shapes, scope.device))
    seen = attempted("Counters of the best and the worst", partial(counted_rows, timed))
    fused = attempted("Blocks of the fused transform", partial(blocks, scope))
    sections = (ranked(timed.rows), seen, fused, timed, held)
    sms = torch.cuda.get_device_properties(scope.device).multi_processor_count if scope.gpu else 0
    text = f"{verdict(timed, held, seen, sms)} {told(fused)}"
    return Findings(sections, of_this_device(scope, text), partial(draw, timed.rows))


STUDY = Study("sweep", "Launch shapes", CLAIM, run)
