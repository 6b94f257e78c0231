"""Hardware counters of a case, read by Nsight Compute in a process of its own.

The test runs again under `ncu`, checks its workload and launches once more between two marks; only
that launch is profiled. Counters say what a kernel did; its time under a profiler is never stored.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

METRICS = {
    "dram_throughput_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "sectors_per_load_request": (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
    ),
    "sectors_per_store_request": (
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"
    ),
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "registers_per_thread": "launch__registers_per_thread",
}
_DURATION = "gpu__time_duration.sum"
_SUMMED = ("dram_read_bytes", "dram_write_bytes")
_WARP = 32
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_TIMEOUT_S = 240
_FORBIDDEN = "ERR_NVGPUCTRPERM"

Counters = dict[str, "float | str | None"]


class CountersError(HarnessError):
    """No counters; `final` is true when no other case of this session will have any either."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def find_ncu(places: Sequence[str] = _PLACES) -> str:
    """Return the path of `ncu`; raise CountersError where there is none."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *places])
    found = shutil.which("ncu", path=path)
    if found is None:
        raise CountersError("Nsight Compute is absent: no `ncu` on PATH", final=True)
    return found


def read_counters(arguments: Sequence[str], folder: Path, *, flush: bool) -> Counters:
    """Run Python with these arguments under ncu in a folder and return the counters.

    `flush` lets ncu empty the caches before the launch, as cold mode does. Raises CountersError.
    """
    return parse(profile(arguments, folder, flush=flush))


def profile(arguments: Sequence[str], folder: Path, *, flush: bool) -> str:
    """Run Python as `read_counters` does and return what ncu wrote, for `parse` or `parse_each`."""
    ncu = find_ncu()
    with tempfile.TemporaryDirectory() as kept:
        log = Path(kept) / "ncu.csv"
        command = [
            ncu,
            *("--profile-from-start", "off"),
            *("--clock-control", "none"),
            *("--cache-control", "all" if flush else "none"),
            *("--target-processes", "all"),
            *("--metrics", ",".join([*METRICS.values(), _DURATION])),
            *("--csv", "--page", "raw", "--print-units", "base"),
            *("--log-file", str(log)),
            sys.executable,
            *arguments,
        ]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CountersError(f"ncu took longer than {_TIMEOUT_S} s") from None
        text = log.read_text() if log.exists() else ""
    _judge(text, done.returncode, done.stdout + done.stderr)
    return text


def _environment() -> dict[str, str]:
    """Return this process's environment without what makes the child one of its test workers."""
    dropped = ("PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)}


def _judge(text: str, code: int, said: str) -> None:
    """Raise CountersError when ncu or the profiled run failed."""
    if _FORBIDDEN in text + said:
        raise CountersError(
            f"the driver forbids performance counters to this user ({_FORBIDDEN})", final=True
        )
    errors = re.findall(r"==ERROR== *(.+)", text + said)
    if errors:
        raise CountersError(f"ncu: {errors[0].strip()}")
    if code:
        last = said.strip().splitlines()[-1:]
        raise CountersError(f"the profiled run failed with {code}: {' '.join(last)}")


def parse(text: str) -> Counters:
    """Return the counters in ncu's raw CSV: of the longest kernel, memory traffic of all.

    Raises CountersError when it holds no kernel.
    """
    kernels = _rows(text)
    longest = max(kernels, key=lambda row: _number(row.get(_DURATION)) or 0.0)
    found = _counters(longest)
    for name in _SUMMED:
        values = [_number(row.get(METRICS[name])) for row in kernels]
        found[name] = sum(value or 0.0 for value in values) if any(values) else None
    found["kernels"] = float(len(kernels))
    return found


def parse_each(text: str) -> list[Counters]:
    """Return the counters of each kernel in ncu's raw CSV, in order of launch.

    Raises CountersError when it holds no kernel.
    """
    return [_counters(row) for row in _rows(text)]


def _rows(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row.get("ID")]
    if not rows:
        raise CountersError("ncu saw no kernel between the marks")
    return rows


def _counters(row: dict[str, str]) -> Counters:
    found: Counters = {name: _number(row.get(metric)) for name, metric in METRICS.items()}
    threads = found["threads_per_instruction"]
    found["warp_efficiency_percent"] = 100 * threads / _WARP if isinstance(threads, float) else None
    found["kernel_name"] = (row.get("Kernel Name") or "")[:200] or None
    return found


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
