"""The words of the project as types: case, environment, commit, result, run, verdict.

Pure data. Times are seconds, rates bytes per second, frequencies hertz. A value that does not
exist is None and its reason stands in `Result.reasons` under the field's path.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from types import MappingProxyType

Scalar = str | int | float | bool
_EMPTY: Mapping[str, Scalar] = MappingProxyType({})
FINGERPRINT_DIGITS = 16


def fingerprint(value: object) -> str:
    """Return a stable hex digest of plain JSON data, independent of key order."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS]


class Status(StrEnum):
    """Whether a result's time may be trusted, and if not, why."""

    OK = "ok"
    NOISY = "noisy"
    THROTTLED = "throttled"
    NO_SAMPLE = "no_sample"
    OVER_PEAK = "over_peak"
    INCORRECT = "incorrect"
    ERROR = "error"


class VerdictKind(StrEnum):
    """What a comparison concluded."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no change"
    UNDECIDED = "undecided"


CHANGES = frozenset({VerdictKind.REGRESSION, VerdictKind.IMPROVEMENT})


@dataclass(frozen=True, slots=True)
class Warn:
    """Something that a reader of a result must know: a stable code and one sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Case:
    """The identity whose history is kept.

    `alignment` names element offsets from a 16-byte boundary, "aligned" or such as "in+1 out+0".
    `version` changes when the benchmark's meaning does (bytes counted differently, other inputs):
    the old series ends there.
    """

    kernel: str
    implementation: str
    dtype: str
    shape: tuple[int, ...]
    alignment: str = "aligned"
    cache: str = "cold"
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    version: int = 1
    _fingerprint: str = field(default="", init=False, repr=False, compare=False)

    def identity(self) -> dict[str, object]:
        """Return the named values that identify the case, as plain JSON data."""
        return {
            "kernel": self.kernel,
            "implementation": self.implementation,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "alignment": self.alignment,
            "cache": self.cache,
            "parameters": dict(self.parameters),
            "version": self.version,
        }

    @property
    def fingerprint(self) -> str:
        """Stable key of the case, independent of parameter order."""
        if not self._fingerprint:  # asked for several times, and made of text each time
            self.known_by(fingerprint(self.identity()))
        return self._fingerprint

    def known_by(self, key: str) -> None:
        """Take the fingerprint that was worked out before, as a store keeps it."""
        object.__setattr__(self, "_fingerprint", key)

    @property
    def label(self) -> str:
        """Short name for people, such as `relu/cuda_vector float32 [67108864] cold`."""
        extra = [f"{k}={v}" for k, v in sorted(self.parameters.items())]
        odd = [] if self.alignment == "aligned" else [self.alignment]
        shape = "x".join(map(str, self.shape))
        return " ".join(
            [
                f"{self.kernel}/{self.implementation}",
                self.dtype,
                f"[{shape}]",
                *odd,
                *extra,
                self.cache,
            ]
        )


@dataclass(frozen=True, slots=True)
class Device:
    """One physical device under its GPU model."""

    uuid: str
    name: str
    memory_bytes: int | None = None
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """What makes results comparable; `backend` is "cuda" or "cpu", whose name is `gpu_model`."""

    backend: str
    gpu_model: str
    driver: str | None = None
    cuda: str | None = None
    compute_capability: str | None = None
    libraries: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    clock_policy: str | None = None
    power_limit_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    l2_bytes: int | None = None
    os: str | None = None
    python: str | None = None

    def matters(self) -> dict[str, object]:
        """Return what comparable environments share: the driver by branch, the rest as it is."""
        return {
            "backend": self.backend,
            "gpu_model": self.gpu_model,
            "driver_branch": self.driver.split(".")[0] if self.driver else None,
            "cuda": self.cuda,
            "libraries": dict(self.libraries),
            "clock_policy": self.clock_policy,
            "power_limit_w": self.power_limit_w,
            "ecc": self.ecc,
            "mig": self.mig,
        }

    @property
    def fingerprint(self) -> str:
        """Stable key of everything that matters for comparing."""
        return fingerprint(self.matters())


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as git gave it; times are ISO 8601 with zone."""

    sha: str
    parents: tuple[str, ...] = ()
    author: str | None = None
    author_time: str | None = None
    commit_time: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Checkout:
    """What was measured: the commit (None outside a checkout) and the state of the tree.

    `notes` says what git could not tell: no checkout, a shallow clone, a detached head.
    `head`, `base` and `merge_base` are set for a pull request's test-merge commit.
    """

    commit: Commit | None = None
    branch: str | None = None
    dirty: bool = False
    tree: str | None = None
    shallow: bool = False
    head: str | None = None
    base: str | None = None
    merge_base: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What a sample says in a few numbers, in seconds."""

    count: int
    median_s: float
    mean_s: float
    min_s: float
    max_s: float
    q1_s: float
    q3_s: float
    stddev_s: float


@dataclass(frozen=True, slots=True)
class Correctness:
    """Outcome of comparing against the float64 reference.

    `worst_error` is the largest absolute error, `worst_ratio` the largest error over its bound.
    """

    checked: bool
    passed: bool | None = None
    worst_error: float | None = None
    bound: float | None = None
    worst_ratio: float | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A cold start split into its parts."""

    compile_s: float | None = None
    load_s: float | None = None
    launch_s: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What the device said of itself at one moment."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    other_processes: int | None = None


@dataclass(frozen=True, slots=True)
class Peaks:
    """The denominators measured or read beside a result."""

    theoretical_bytes_per_s: float | None = None
    copy_bytes_per_s: float | None = None
    copy_source: str | None = None
    two_read_bytes_per_s: float | None = None
    theoretical_flop_per_s: float | None = None
    floor_s: float | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a kernel was given: enough to draw it again.

    `seed` draws the values that are timed, `fresh_seed` the others that are checked last, both from
    `distribution` as the benchmark names it. `specials` says whether NaN, infinities, zeros of both
    signs and a subnormal were planted among floating-point values.
    """

    seed: int
    fresh_seed: int | None = None
    distribution: str | None = None
    specials: bool | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Sample, summary, correctness and warnings of one case in one run.

    `flush_bytes` is what was written before every launch so that no cache held the data, None
    where launches follow each other. It and `inputs` are None in records of before they existed.
    """

    case: Case
    status: Status
    measurements_s: tuple[float, ...] = ()
    summary: Summary | None = None
    bytes_moved: int | None = None
    flop: int | None = None
    timer: str | None = None
    stop_reason: str | None = None
    median_cycles: float | None = None
    correctness: Correctness = Correctness(checked=False)
    first_call: FirstCall = FirstCall()
    before: DeviceState | None = None
    during: DeviceState | None = None
    after: DeviceState | None = None
    peaks: Peaks = Peaks()
    code_fingerprint: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    test: str | None = None
    energy: Mapping[str, float | None] | None = None
    counters: Mapping[str, float | str | None] | None = None
    warnings: tuple[Warn, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inputs: Inputs | None = None
    flush_bytes: int | None = None

    @property
    def timed(self) -> bool:
        """Whether there are measurements, each of them a positive time."""
        sample = self.measurements_s
        if not sample or not min(sample) > 0:
            return False
        # A finite sum is of finite numbers: asked a dozen times of each sample, so asked fast.
        return isfinite(sum(sample)) or all(map(isfinite, sample))

    @property
    def bandwidth(self) -> float | None:
        """Bytes moved over the median time, in bytes per second; None beyond what a float holds."""
        if self.summary is None or self.bytes_moved is None:
            return None
        return _finite(self.bytes_moved / self.summary.median_s)

    @property
    def copy_fraction(self) -> float | None:
        """Bandwidth over that of a same-size copy measured in the same run."""
        bandwidth, copy = self.bandwidth, self.peaks.copy_bytes_per_s
        return _finite(bandwidth / copy) if bandwidth is not None and copy else None


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Run:
    """Results of one commit in one environment on one device."""

    run_id: str
    started_at: str
    finished_at: str | None
    environment: Environment
    device: Device
    checkout: Checkout
    results: tuple[Result, ...]
    complete: bool = True
    command: str | None = None
    ci: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    demo: bool = False
