"""ReLU under Nsight Compute, before (an element a thread) and after (16 bytes a thread).

Counters say what a kernel did; its time under a profiler is another, so the bytes that were counted
are divided by the time that the chain of trust found. "GPU utilisation" is what NVML says while the
kernel is launched over and over: the share of time in which any kernel is on the device.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from kernels.cases import Case
from kernels.registry import get
from kernels.tiling import PLAIN_THREADS, VECTOR_BYTES, loads_per_thread, threads_of
from perftests.harness.counters import CountersError
from perftests.studies.counted import counters
from perftests.studies.frame import Findings, Study, attempted, measured_rows
from perftests.studies.nsight_relu_told import AFTER, BEFORE, drawing, side_by_side, verdict
from perftests.studies.occupancy import estimated
from perftests.studies.tables import Row, Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftests.harness.chain import Outcome
    from perftests.harness.counters import Counters
    from perftests.harness.session import Bench
    from perftests.studies.frame import Scope

NAMES = (BEFORE, AFTER)
_MIB, _SMALL_MIB = 256, 1
_WAITED_MIB = 1
_WATCHED_S = 1.2
"""NVML's utilisation is that of its last sample period, between a sixth and one second."""
_AHEAD = 32
_ARCH = "sm_90"
_UTILISATION = "nvmlDeviceGetUtilizationRates"


def launch_of(name: str, mib: int, device: str = "cuda") -> Callable[[], object]:
    """Return the launch of one implementation on random fp32 of a size, on a GPU."""
    x = torch.randn(mib << 18, device=device)
    return partial(get("relu", name), x, out=torch.empty_like(x))


def timed(scope: Scope) -> dict[str, Outcome]:
    """Return the outcomes of both implementations. Raises RuntimeError where a chain breaks."""
    mib = _SMALL_MIB if scope.small else _MIB
    case = Case("relu", "float32", (mib << 18,))
    found = {}
    for name in NAMES:
        implementation = get("relu", name)
        reason = implementation.unavailable(scope.device, torch.float32)
        if reason is not None:
            raise RuntimeError(reason)
        found[name] = scope.measure(workload(implementation, case, scope.device))
    return found


def counted(scope: Scope, outcomes: dict[str, Outcome]) -> tuple[dict[str, Counters], str | None]:
    """Return the counters by implementation, or none and why; both go into the kept results."""
    mib = _SMALL_MIB if scope.small else _MIB
    try:
        found = dict(zip(NAMES, counters("nsight_relu", [(n, mib) for n in NAMES]), strict=True))
    except CountersError as error:
        reason = str(error) if scope.gpu else "there is no GPU to count on"
        for outcome in outcomes.values():
            outcome.result["reasons"]["counters"] = f"not read: {reason}"
        return {}, reason
    for name, outcome in outcomes.items():
        outcome.result["counters"] = dict(found[name])
    return found, None


def utilisation(scope: Scope) -> Section:
    """Return what NVML calls utilisation, under launches without a gap and under waited ones."""
    bench = scope.session.bench(scope.device)
    absent = "NVML watches a GPU" if not scope.gpu else bench.watch.absent
    if absent is not None:
        raise RuntimeError(absent)
    rows: list[Row] = []
    for name in NAMES:
        for mib, ahead in ((_MIB, _AHEAD), (_WAITED_MIB, 1)):
            found = _watched(bench, launch_of(name, mib, str(scope.device)), ahead)
            if found is None:
                told = bench.watch.refused.get(_UTILISATION, "no such reading")
                raise RuntimeError(f"NVML refused its utilisation: {told}")
            way = "without a gap" if ahead > 1 else "each waited for"
            rows.append({"implementation": name, "MiB": mib, "launches": way, "GPU %": found})
    how = (
        f"What NVML says after {_WATCHED_S:g} s of launches: the share of time in which a kernel "
        "is on the device, whatever that kernel does there"
    )
    return Section("GPU utilisation", how, rows)


def _watched(bench: Bench, launch: Callable[[], object], ahead: int) -> int | None:
    """Return NVML's reading at the end of a load, `ahead` launches between two waits."""
    with bench.lock.alone():
        until = time.perf_counter() + _WATCHED_S
        while time.perf_counter() < until:
            for _ in range(ahead):
                launch()
            torch.cuda.synchronize()
        rates: Any = bench.watch.ask(_UTILISATION)
    return None if rates is None else int(rates.gpu)


def machine_code(scope: Scope) -> Section:
    """Return registers, widths and the occupancy that they allow; needs no GPU."""
    from kernels import build, sass

    arch = _ARCH
    if scope.gpu:
        from kernels.launch import arch_of, index_of

        arch = arch_of(index_of(scope.device))
    implementation: Any = get("relu", AFTER)
    source: Path = implementation.source
    loads = loads_per_thread(_MIB << 20, implementation.loads)
    found = sass.facts(build.compile_cubin(source, arch).code)
    rows: list[Row] = []
    for name, symbol, threads, read in (
        (BEFORE, "relu_scalar_f32", PLAIN_THREADS, 4),
        (AFTER, f"relu_x{loads}_f32", threads_of(loads), loads * VECTOR_BYTES),
    ):
        fact = found[symbol]
        held = estimated(fact.registers, threads)
        rows.append(
            {
                "implementation": name,
                "kernel": symbol,
                "threads a block": threads,
                "registers": fact.registers,
                "widest load bits": max(fact.loads),
                "widest store bits": max(fact.stores),
                "instructions": fact.instructions,
                "occupancy %": 100 * held.occupancy,
                "KiB in flight an SM": held.resident * read / 1024,
            }
        )
    how = f"Built for {arch}; occupancy is what registers and threads allow; a thread reads once"
    return Section("Machine code", how, rows)


def facts_of(outcome: Outcome, seen: Counters | None, peak: float | None) -> Row:
    """Return an implementation's numbers by metric: times, and counters where there are any.

    `peak` is the memory's theoretical rate in bytes a second.
    """
    seconds, moved = median(outcome.seconds), outcome.result["bytes_moved"]
    found: Row = {"time us": seconds * 1e6, "GB/s that had to move": moved / seconds / 1e9}
    copy = outcome.result["peaks"].get("copy_bytes_per_s")
    if copy:
        found["% of a copy"] = 100 * moved / seconds / copy
    if seen is None:
        return found
    read, written = seen.get("dram_read_bytes"), seen.get("dram_write_bytes")
    if isinstance(read, float) and isinstance(written, float):
        rate = (read + written) / seconds
        found["DRAM GB/s"] = rate / 1e9
        found["DRAM bytes / bytes that had to move"] = (read + written) / moved
        if peak:
            found["DRAM % of peak"] = 100 * rate / peak
    for counter, metric in _COUNTED.items():
        value = seen.get(counter)
        if isinstance(value, float):
            found[metric] = value
    return found


_COUNTED = {
    "dram_throughput_percent": "DRAM % of peak, under ncu",
    "warp_efficiency_percent": "warp execution efficiency %",
    "occupancy_percent": "achieved occupancy %",
    "registers_per_thread": "registers",
    "sectors_per_load_request": "sectors a load request",
    "sectors_per_store_request": "sectors a store request",
    "l2_hit_percent": "L2 hit rate %",
}


def run(scope: Scope) -> Findings:
    """Time both, count both, and set them beside the article's numbers."""
    outcomes = timed(scope)
    seen, reason = counted(scope, outcomes)
    peak = scope.session.bench(scope.device).theoretical.theoretical_bytes_per_s
    facts = {n: facts_of(outcomes[n], seen.get(n), peak) for n in NAMES}
    used = attempted("GPU utilisation", lambda: utilisation(scope))
    code = attempted("Machine code", lambda: machine_code(scope))
    for row in measured_rows(used):
        if row["launches"] == "without a gap":
            facts[str(row["implementation"])]["GPU utilisation %"] = row["GPU %"]
    for row in measured_rows(code):
        mine = facts[str(row["implementation"])]
        mine.setdefault("registers", row["registers"])
        mine |= {name: row[name] for name in ("threads a block", "KiB in flight an SM")}
    table = side_by_side(facts)
    how = "cold medians of the chain of trust, counted bytes over them; the article's beside ours"
    how = f"fp32, {_SMALL_MIB if scope.small else _MIB} MiB, {how}"
    if reason:
        how += f". Nsight Compute gave no counters: {reason}"
    section = Section("Before and after", how, table)
    told = verdict(facts, measured_rows(used), reason)
    return Findings((section, used, code), told, drawing(facts))


STUDY = Study(
    "nsight_relu",
    "ReLU under Nsight Compute",
    "Elementwise optimisation in practice (article B): the unoptimised ReLU has 62 % GPU "
    "utilisation, 120 of 900 GB/s of DRAM throughput, 78 % warp execution efficiency and 32 "
    "registers in blocks of 128; vectorised, in blocks of 256 with 24 registers, it is to reach "
    "more than 90 %, nearly 900 GB/s and more than 95 %.",
    run,
)
