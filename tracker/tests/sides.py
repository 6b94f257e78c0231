"""Sides for the verdict's tests: plain H200 results with a planted change."""

import zlib
from typing import Any

import numpy as np

from tracker.model import Case, Checkout, Commit, Device, Environment, Peaks, Result, Status
from tracker.sides import Earlier, Side
from tracker.stats.summary import log_median, summarize

H200 = Environment("cuda", "NVIDIA H200", driver="580.65.06", cuda="13.0", clock_policy="default")
CPU = Environment("cpu", "a CPU")
BOARD = Device("GPU-1", "NVIDIA H200")
MIB = 1 << 20


def make_result(
    mib: int = 64,
    times: tuple[float, ...] | None = None,
    center_s: float | None = None,
    count: int = 100,
    spread: float = 0.008,
    seed: int = 0,
    copy: float | None = 1.0,
    status: Status = Status.OK,
    **fields: Any,
) -> Result:
    """Return a ReLU result of `mib` MiB; `copy` divides the copy bandwidth measured beside it."""
    case = Case("relu", "cuda_vector", "float32", (mib * MIB // 4,))
    usual_s = 2 * mib * MIB / 3.6e12
    center_s = center_s or usual_s
    if times is None:
        rng = np.random.default_rng(zlib.crc32(f"{seed}".encode()))
        times = tuple(float(v) for v in center_s * np.exp(spread * rng.standard_normal(count)))
    good = bool(times) and all(np.isfinite(times)) and min(times) > 0
    return Result(
        case=fields.pop("case", case),
        status=status,
        measurements_s=times,
        summary=summarize(times) if good else None,
        bytes_moved=fields.pop("bytes_moved", 2 * mib * MIB),
        peaks=Peaks(
            theoretical_bytes_per_s=4.8e12, copy_bytes_per_s=3.6e12 / copy if copy else None
        ),
        **fields,
    )


def make_side(
    mib: int = 64,
    slower: float = 0.0,
    *,
    environment: Environment = H200,
    device: Device = BOARD,
    sha: str = "a",
    dirty: bool = False,
    **fields: Any,
) -> Side:
    """Return a side whose result is `slower` by a fraction in time."""
    side: dict[str, Any] = {
        k: fields.pop(k) for k in ("measured_at", "repeats", "rule") if k in fields
    }
    side["history"] = tuple(map(glance, fields.pop("history", ())))
    result = make_result(mib, center_s=2 * mib * MIB / 3.6e12 * (1 + slower), **fields)
    return Side(result, environment, Checkout(Commit(sha * 40), dirty=dirty), device, **side)


def glance(result: Result) -> Earlier:
    """Return what a later run sees of a result."""
    median = log_median(result.measurements_s)
    seconds = float(np.exp(median.value))
    copy = result.peaks.copy_bytes_per_s
    cost = seconds * copy / result.bytes_moved if copy and result.bytes_moved else None
    return Earlier(seconds, median.spread, median.count, result.median_cycles, cost)
