"""Vector width: add by one, two, three and four floats and by one, two and eight halves a thread.

Each pack stands beside the loads and stores that its machine code really has, aligned and not, with
the vector kernel of the suite, torch and Triton. Three floats are the story: twelve bytes are no
access of the machine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels import build, launch
from kernels.cases import MIB, Case
from kernels.cuda import SUFFIX
from kernels.gate import gates
from kernels.inputs import empty_at
from kernels.registry import get
from kernels.sass import facts
from perftests.studies.counted import counters
from perftests.studies.frame import Findings, Study, attempted, of_this_device, reason_of
from perftests.studies.tables import Section
from perftests.studies.width_verdict import draw, verdict
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kernels.sass import Facts
    from perftests.studies.frame import Scope
    from perftests.studies.tables import Row

PACKS = {
    "float32": {"cuda_float1": 1, "cuda_float2": 2, "cuda_float3": 3, "cuda_float4": 4},
    "float16": {"cuda_half": 1, "cuda_half2": 2, "cuda_half8": 8},
}
"""Elements a thread, by implementation."""
PEERS = ("cuda_vector", "torch", "triton")
SIZES_MIB = (16, 256)
SMALL_SIZES_MIB = (1,)
OFFSETS = {"both one off": ((1, 1), 1), "inputs one off": ((1, 1), 0)}
INPUTS = 2
STATIC_ARCH = "sm_90"
_WARP, _SECTOR = 32, 32
CLAIM = (
    'Article C ("Performance model and elementwise optimisation") templates add over float1 to '
    "float4, half and half2: float2 and float4 gain; float3, whose 12 bytes are no power of two, "
    "does not, since its PTX has three scalar accesses; half2 with __hadd2 gains over half."
)
LONG = 12
"""Rows from which the table of offsets is folded."""
_UNITS = {"time": "us", "bandwidth": "GB/s", "of copy": "%", "over one": "x", "over aligned": "x"}


def code(arch: str) -> Section:
    """Return what the machine code of each pack loads and stores."""
    source = gates()["add"].source
    found = facts(build.compile_cubin(source, arch).code)
    rows = [
        _code_row(name, dtype, elements, found[_symbol(name, dtype)])
        for dtype, packs in PACKS.items()
        for name, elements in packs.items()
    ]
    how = (
        f"SASS for {arch}; accesses as count x bits a thread, of the main path (the elements that "
        "the end leaves over have one 16- or 32-bit access an array more); `sectors` of 32 bytes "
        "that a warp's load touches and those that its data fill"
    )
    return Section("What the machine code has", how, rows)


def _symbol(name: str, dtype: str) -> str:
    return f"add_{name.removeprefix('cuda_')}_{SUFFIX[getattr(torch, dtype)]}"


def _code_row(name: str, dtype: str, elements: int, found: Facts) -> Row:
    size = getattr(torch, dtype).itemsize
    tail = 1 if elements > 1 else 0
    loads = _without(found.loads, 8 * size, INPUTS * tail)
    stores = _without(found.stores, 8 * size, tail)
    widest = max(loads)
    stride = elements * size
    return {
        "implementation": name,
        "dtype": dtype,
        "bytes a thread": stride,
        "loads": _told(loads),
        "stores": _told(stores),
        "loads an input": sum(loads.values()) // INPUTS,
        "widest bits": widest,
        "registers": found.registers,
        "sectors": stride * _WARP // _SECTOR,
        "sectors filled": widest // 8 * _WARP // _SECTOR,
    }


def _without(accesses: Mapping[int, int], bits: int, count: int) -> dict[int, int]:
    left = {width: n - (count if width == bits else 0) for width, n in accesses.items()}
    return {width: n for width, n in sorted(left.items(), reverse=True) if n > 0}


def _told(accesses: Mapping[int, int]) -> str:
    return " + ".join(f"{count} x {bits}" for bits, count in accesses.items())


def aligned(scope: Scope, sizes_mib: Sequence[int]) -> Section:
    """Measure every pack and peer at each size, aligned."""
    rows: list[Row] = []
    for dtype, packs in PACKS.items():
        for mib in sizes_mib:
            case = _case(dtype, mib)
            rows += _against(list(_measured(scope, case, mib)), next(iter(packs)), "over one")
    how = (
        "y = a + b, cold medians; MiB of one input; `of copy` over a copy that moves as many "
        "bytes; `over one` is the speed-up over one element a thread"
    )
    return Section("Packs, aligned", how, rows, _UNITS)


def misaligned(scope: Scope, mib: int, aligned_rows: Sequence[Row]) -> Section:
    """Measure every pack and peer where tensors start off a 16-byte boundary.

    `aligned_rows` are those of the aligned cases, which stand beside them.
    """
    base = {
        (row["dtype"], row["implementation"]): row
        for row in aligned_rows
        if row["MiB"] == mib and "time" in row
    }
    found = [{**row, "offsets": "aligned", "over aligned": 1.0} for row in base.values()]
    for dtype in PACKS:
        for label, (inputs, output) in OFFSETS.items():
            case = replace(_case(dtype, mib), input_offsets=inputs, output_offset=output)
            for row in _measured(scope, case, mib):
                other = base.get((dtype, row["implementation"]))
                if other is not None and "time" in row:
                    row["over aligned"] = float(row["time"]) / float(other["time"])
                    found.append({**row, "offsets": label})
    order = [(dtype, name) for dtype, packs in PACKS.items() for name in (*packs, *PEERS)]
    found.sort(key=lambda row: order.index((str(row["dtype"]), str(row["implementation"]))))
    rows = [{k: v for k, v in row.items() if k != "over one"} for row in found]
    how = (
        "The same, where inputs or all tensors start one element off a 16-byte boundary; "
        "`over aligned` is the time over that of the aligned case. A pack that is off its own "
        "width falls back to one element a thread, as frameworks do"
    )
    return Section("Aligned against misaligned", how, rows, _UNITS, folded=len(rows) > LONG)


def _case(dtype: str, mib: int) -> Case:
    return Case("add", dtype, (mib * MIB // getattr(torch, dtype).itemsize,))


def _measured(scope: Scope, case: Case, mib: int) -> Iterator[Row]:
    for name in (*PACKS[case.dtype], *PEERS):
        implementation = get("add", name)
        row: Row = {"implementation": name, "dtype": case.dtype, "MiB": mib}
        reason = implementation.unavailable(scope.device, case.torch_dtype)
        if reason is None:
            load = workload(implementation, case, scope.device)
            try:
                outcome = scope.measure(load)
            except RuntimeError as error:
                reason = reason_of(error)
        if reason is not None:
            yield {**row, "note": reason}
            continue
        seconds = median(outcome.seconds)
        rate = load.bytes_moved / seconds
        copy = outcome.result["peaks"].get("copy_bytes_per_s") or float("nan")
        yield {**row, "time": seconds, "bandwidth": rate, "of copy": rate / copy}


def _against(rows: list[Row], single: str, column: str) -> list[Row]:
    base = next((r["time"] for r in rows if r["implementation"] == single and "time" in r), 0)
    for row in rows:
        if base and "time" in row:
            row[column] = float(base) / float(row["time"])
    return rows


def launch_of(dtype: str, mib: int, name: str) -> Callable[[], None]:
    """Return a launch for the counters, on tensors of its own."""
    device = torch.device("cuda", torch.cuda.current_device())
    case = _case(dtype, mib)
    a, b, out = (empty_at(case.shape, case.torch_dtype, device) for _ in range(3))
    for tensor in (a, b):
        tensor.normal_()
    return partial(get("add", name), a, b, out=out)


def counted_rows(mib: int) -> Section:
    """Return the counters of every pack and of the vector kernel."""
    specs = [
        (dtype, mib, name) for dtype, packs in PACKS.items() for name in (*packs, "cuda_vector")
    ]
    wanted = {
        "sectors_per_load_request": "sectors a load",
        "sectors_per_store_request": "sectors a store",
        "dram_throughput_percent": "DRAM throughput %",
        "occupancy_percent": "occupancy %",
        "l2_hit_percent": "L2 hits %",
        "registers_per_thread": "registers",
    }
    rows: list[Row] = []
    for (dtype, _, name), seen in zip(specs, counters("width", specs), strict=True):
        row: Row = {"implementation": name, "dtype": dtype}
        told = {text: seen.get(key) for key, text in wanted.items()}
        rows.append({**row, **{k: v for k, v in told.items() if v is not None}})
    how = (
        f"Nsight Compute, cold caches, one launch each at {mib} MiB an input, aligned; registers "
        "are those that the launch takes, at least 16"
    )
    return Section("Counters", how, rows)


def run(scope: Scope) -> Findings:
    """Read the code, measure the packs, read the counters."""
    sizes = SMALL_SIZES_MIB if scope.small else SIZES_MIB
    arch = launch.arch_of(launch.index_of(scope.device)) if scope.gpu else STATIC_ARCH
    has = attempted("What the machine code has", partial(code, arch))
    times = aligned(scope, sizes)
    off = misaligned(scope, sizes[-1], times.rows)
    seen = attempted("Counters", partial(counted_rows, sizes[-1]))
    sections = (has, times, off, seen)
    text = of_this_device(scope, verdict(has, times, off, seen))
    return Findings(sections, text, partial(draw, off))


STUDY = Study("width", "Vector width", CLAIM, run)
