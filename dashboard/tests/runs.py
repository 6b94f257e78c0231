"""Realistic runs for tests: three kernels on two GPU models over some thirty commits.

Noise between runs and its dependence on size follow measurements on an H200 (a spread of the
median of 1.7 % at 1 MiB, 0.65 % at 16 MiB, 0.3 % at 64 MiB, 0.04 % from 256 MiB). Planted: one
regression, one improvement, one case that vanishes, one incorrect result, one change of CUDA.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1

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

H200 = "NVIDIA H200"
A100 = "NVIDIA A100-SXM4-80GB"
COMMITS = 30
FIRST = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
# Indices of commits where something was planted.
REGRESSION_AT, IMPROVEMENT_AT, VANISHED_AT, CUDA_AT = 21, 12, 24, 4
REGRESSED = Case("relu", "cuda_vector", "float32", (1 << 26,))
IMPROVED = Case("fused_transform", "triton", "float32", (64, 512, 512, 3))
VANISHED = Case("add", "torch", "float32", (1 << 20,))
INCORRECT = Case("relu", "cuda_scalar", "float16", (12345,), alignment="in+1 out+0")
_AUTHORS = ("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra")
_SUBJECTS = (
    "Unroll the tail loop",
    "Read the launch bounds from the registry",
    "Drop a redundant synchronize",
    "Document the alignment rule",
    "Use 256 threads a block",
    "Fold the scale into the matrix",
)
# Bandwidth of large cases as a part of the copy's, by implementation.
_SPEED = {"torch": 0.955, "cuda_scalar": 0.93, "cuda_vector": 0.995, "triton": 0.985}
_BYTES = {"float32": 4, "float16": 2}
# Per model: theoretical peak, measured copy (bytes per second), FLOP per second.
_MODELS = {H200: (4.8e12, 4.1e12, 67e12), A100: (2.039e12, 1.74e12, 19.5e12)}


@dataclass(frozen=True, slots=True)
class Plan:
    """How many commits to make, how many measurements a result has, and which models to use."""

    commits: int = COMMITS
    measurements: int = 24
    seed: int = 7
    models: tuple[str, ...] = (H200, A100)


def cases() -> tuple[Case, ...]:
    sizes = (1 << 18, 1 << 22, 1 << 26)
    found = [
        Case("relu", implementation, dtype, (size,))
        for implementation in _SPEED
        for dtype in _BYTES
        for size in sizes
    ]
    found += [
        Case("add", implementation, "float32", (size,))
        for implementation in ("torch", "cuda_scalar", "cuda_vector")
        for size in (1 << 20, 1 << 26)
    ]
    found += [
        Case("fused_transform", implementation, "float32", shape)
        for implementation in ("torch", "cuda_vector", "triton")
        for shape in ((8, 512, 512, 3), (64, 512, 512, 3))
    ]
    found.append(INCORRECT)
    found.append(replace(REGRESSED, alignment="in+1 out+0"))
    return tuple(found)


def sha(index: int, branch: str = "main") -> str:
    return sha1(f"{branch} {index}".encode()).hexdigest()


def commit(index: int, branch: str = "main", subject: str | None = None) -> Commit:
    when = (FIRST + timedelta(hours=31 * index)).isoformat()
    parents = (sha(index - 1),) if index else ()
    return Commit(
        sha=sha(index, branch),
        parents=parents,
        author=_AUTHORS[index % len(_AUTHORS)],
        author_time=when,
        commit_time=when,
        subject=subject or _SUBJECTS[index % len(_SUBJECTS)],
    )


def environment(model: str, *, cuda: str = "13.0") -> Environment:
    return Environment(
        backend="cuda",
        gpu_model=model,
        driver="580.95.05",
        cuda=cuda,
        compute_capability="9.0" if model == H200 else "8.0",
        libraries={"torch": "2.11.0", "cupy": "14.2.0", "triton": "3.6.0"},
        clock_policy="application clocks",
        power_limit_w=700.0 if model == H200 else 400.0,
        ecc=True,
        mig=False,
        l2_bytes=(50 if model == H200 else 40) << 20,
        os="Linux 6.8",
        python="3.12.3",
    )


def runs(plan: Plan = Plan()) -> Iterator[Run]:
    """Yield runs in the order in which they were measured; the last one is of a branch."""
    rng = np.random.default_rng(plan.seed)
    for index in range(plan.commits):
        for model in plan.models:
            if model == H200 or index % 4 == 1:
                yield run(rng, index, model, plan)
    if plan.commits >= COMMITS:
        yield run(rng, plan.commits, H200, plan, branch="speed-up-add")


def run(
    rng: np.random.Generator,
    index: int,
    model: str = H200,
    plan: Plan = Plan(),
    *,
    branch: str = "main",
    started: datetime | None = None,
    subject: str | None = None,
) -> Run:
    """Return one run of one commit."""
    started = started or FIRST + timedelta(hours=31 * index, minutes=20)
    results = tuple(
        result(rng, case, index, model, plan)
        for case in cases()
        if not (case == VANISHED and index >= VANISHED_AT)
    )
    return Run(
        run_id=sha1(f"run {model} {branch} {index} {started}".encode()).hexdigest()[:16],
        started_at=started.isoformat(),
        finished_at=(started + timedelta(seconds=52)).isoformat(),
        environment=environment(model, cuda="12.9" if index < CUDA_AT else "13.0"),
        device=Device(f"GPU-{model[-4:]}-0001", model, memory_bytes=141 << 30),
        checkout=Checkout(commit=commit(index, branch, subject), branch=branch, tree="t"),
        results=results,
        command="pytest --benchmark perftests",
        ci={"url": f"https://ci.example.org/runs/{1000 + index}", "name": "nightly"},
    )


def bytes_and_flop(case: Case) -> tuple[int, int]:
    count = int(np.prod(case.shape))
    item = _BYTES[case.dtype]
    arrays, flop = {"relu": (2, 1), "add": (3, 1), "fused_transform": (2, 6)}[case.kernel]
    return count * item * arrays, count * flop


def median_s(case: Case, index: int, model: str) -> float:
    """Return the true time: a launch floor, then a fraction of the copy's bandwidth."""
    moved, _ = bytes_and_flop(case)
    fraction = _SPEED[case.implementation] * (0.8 if case.alignment != "aligned" else 1.0)
    if case == REGRESSED and index >= REGRESSION_AT and model == H200:
        fraction *= 0.95
    if case == IMPROVED and index >= IMPROVEMENT_AT and model == H200:
        fraction *= 1.03
    return 4.2e-6 + moved / (fraction * _MODELS[model][1])


def result(rng: np.random.Generator, case: Case, index: int, model: str, plan: Plan) -> Result:
    moved, flop = bytes_and_flop(case)
    peak, copy, flops = _MODELS[model]
    base = Result(
        case=case,
        status=Status.OK,
        bytes_moved=moved,
        flop=flop,
        timer="cuda events",
        stop_reason="precision reached",
        first_call=FirstCall(compile_s=0.41, load_s=0.002, launch_s=0.0001),
        peaks=Peaks(
            theoretical_bytes_per_s=peak,
            copy_bytes_per_s=copy * moved / (moved + copy * 4.2e-6),
            copy_source="same-size copy in this run",
            two_read_bytes_per_s=1.02 * copy,
            theoretical_flop_per_s=flops,
            floor_s=2.1e-6,
        ),
        code_fingerprint=_code(case, index),
        source_file=f"kernels/{case.kernel}/cuda.cu",
        source_line=12,
        test=f"perftests/test_{case.kernel}.py::test_{case.kernel}[{case.label}]",
    )
    if case == INCORRECT and index == plan.commits - 1 and model == H200:
        return _incorrect(base)
    return _timed(rng, base, median_s(case, index, model), index, plan)


def _code(case: Case, index: int) -> str | None:
    if case.implementation == "torch":
        return None
    changed = case == REGRESSED and index >= REGRESSION_AT
    return sha1(f"{case.label} {changed}".encode()).hexdigest()[:16]


def _timed(rng: np.random.Generator, base: Result, true_s: float, index: int, plan: Plan) -> Result:
    size = np.log2((base.bytes_moved or 1) / (1 << 20))
    between = float(np.interp(size, (0, 4, 6, 8), (0.006, 0.003, 0.0012, 0.0002)))
    centre = true_s * (1 + rng.normal(0, between))
    values = centre * (1 + rng.gamma(2.0, max(between, 0.001), plan.measurements))
    q1, median, q3 = (float(v) for v in np.quantile(values, (0.25, 0.5, 0.75)))
    noisy = between > 0.005 and rng.uniform() < 0.15
    state = DeviceState(1.98e9, 3.201e9, 41.0 + index % 5, 390.0, (), 0)
    return replace(
        base,
        status=Status.NOISY if noisy else Status.OK,
        measurements_s=tuple(float(v) for v in values),
        summary=Summary(
            count=len(values),
            median_s=median,
            mean_s=float(values.mean()),
            min_s=float(values.min()),
            max_s=float(values.max()),
            q1_s=q1,
            q3_s=q3,
            stddev_s=float(values.std(ddof=1)),
        ),
        median_cycles=median * 1.98e9,
        correctness=Correctness(
            checked=True, passed=True, worst_error=3.0e-8, bound=1.2e-7, worst_ratio=0.25
        ),
        before=state,
        during=replace(state, power_w=612.0),
        after=state,
        warnings=(Warn("noisy", "precision goal of 0.2 % not reached"),) if noisy else (),
    )


def _incorrect(base: Result) -> Result:
    return replace(
        base,
        status=Status.INCORRECT,
        correctness=Correctness(
            True, False, 0.5, 9.8e-4, 512.0, "element 12344: -0.5, expected 0.0"
        ),
        reasons={"measurements_s": "failed its correctness check", "summary": "no measurements"},
    )
