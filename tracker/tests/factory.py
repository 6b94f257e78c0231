"""Small runs with known content for the tests of every part of the tracker."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracker.model import (
    Case,
    Checkout,
    Commit,
    Correctness,
    Device,
    DeviceState,
    Environment,
    FirstCall,
    Peaks,
    Result,
    Run,
    Status,
    Summary,
    Warn,
)

H200 = Environment(
    backend="cuda",
    gpu_model="NVIDIA H200",
    driver="580.95.05",
    cuda="13.0",
    compute_capability="9.0",
    libraries={"torch": "2.11.0", "triton": "3.6.0"},
    clock_policy="default",
    power_limit_w=700.0,
    ecc=True,
    mig=False,
    l2_bytes=62914560,
    os="Linux 6.8",
    python="3.12.3",
)
DEVICE = Device("GPU-11111111-2222-3333-4444-555555555555", "NVIDIA H200", 150_000_000_000, 132)


def sha(number: int) -> str:
    """Return a distinct, well-formed commit id."""
    return f"{number:040x}"


def summarise(sample: Sequence[float]) -> Summary:
    array = np.array(sample, dtype=np.float64)
    q1, median, q3 = (float(q) for q in np.quantile(array, [0.25, 0.5, 0.75]))
    return Summary(
        count=array.size,
        median_s=median,
        mean_s=float(array.mean()),
        min_s=float(array.min()),
        max_s=float(array.max()),
        q1_s=q1,
        q3_s=q3,
        stddev_s=float(array.std(ddof=1)) if array.size > 1 else 0.0,
    )


def make_case(
    kernel: str = "relu", implementation: str = "cuda_vector", n: int = 1 << 26, **more: Any
) -> Case:
    return Case(kernel, implementation, more.pop("dtype", "float32"), (n,), **more)


def make_result(
    case: Case | None = None, sample: Sequence[float] | None = None, **more: Any
) -> Result:
    case = case or make_case()
    sample = [1.31e-4, 1.29e-4, 1.3e-4, 1.32e-4, 1.3e-4, 1.28e-4] if sample is None else sample
    values: dict[str, Any] = {
        "status": Status.OK,
        "measurements_s": tuple(sample),
        "summary": summarise(sample) if len(sample) else None,
        "bytes_moved": 2 * 4 * case.shape[0],
        "flop": case.shape[0],
        "timer": "cuda events",
        "stop_reason": "interval narrow enough",
        "median_cycles": 257_400.5,
        "correctness": Correctness(
            checked=True, passed=True, worst_error=0.0, bound=0.0, worst_ratio=0.0
        ),
        "first_call": FirstCall(compile_s=0.31, load_s=0.002, launch_s=2.5e-5),
        "before": DeviceState(1.98e9, 3.2e9, 41.0, 121.5, (), 0),
        "during": DeviceState(1.935e9, 3.2e9, 44.0, 498.2, ("sw power cap",), 0),
        "after": DeviceState(1.98e9, 3.2e9, 43.0, 250.0, (), None),
        "peaks": Peaks(4.8e12, 4.21e12, "copy of the same size", 4.3e12, 6.7e13, 2.4e-6),
        "code_fingerprint": "8c1f2b7a9d3e4f50",
        "source_file": "kernels/relu/cuda.cu",
        "source_line": 12,
        "test": "perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]",
        "energy": None,
        "counters": None,
        "warnings": (Warn("clock", "the SM clock moved by 2 % during the window"),),
        "reasons": {"energy": "not asked for", "counters": "not asked for"},
    }
    return Result(case=case, **{**values, **more})


def make_commit(number: int = 1, parents: Sequence[int] = (), minute: int | None = None) -> Commit:
    minute = number if minute is None else minute
    time = f"2026-03-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00+01:00"
    return Commit(
        sha(number),
        tuple(map(sha, parents)),
        "Ada <ada@example.org>",
        time,
        time,
        f"Change {number}",
    )


def make_run(run_id: str = "run-00000001", number: int | None = 1, **more: Any) -> Run:
    minute = more.pop("minute", number or 0)
    commit = (
        None
        if number is None
        else make_commit(number, more.pop("parents", (number - 1,) if number > 1 else ()))
    )
    values: dict[str, Any] = {
        "started_at": f"2026-03-02T{minute // 60 % 24:02d}:{minute % 60:02d}:00+00:00",
        "finished_at": f"2026-03-02T{minute // 60 % 24:02d}:{minute % 60:02d}:40.5Z",
        "environment": H200,
        "device": DEVICE,
        "checkout": Checkout(
            commit=commit, branch="main", dirty=more.pop("dirty", False), tree="t" * 40
        ),
        "results": (
            make_result(),
            make_result(make_case(implementation="torch"), [2e-4, 2.1e-4, 2.05e-4]),
        ),
        "command": "pytest --benchmark",
        "ci": {"name": "github", "url": "https://example.org/runs/1"},
        "notes": ("first",),
    }
    return Run(run_id=run_id, **{**values, **more})
