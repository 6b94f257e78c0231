"""Energy: J/GB of scalar against vector kernels, idle subtracted, with error bars.

Each kernel runs back to back for about a second, several times over, in turn with the others and in
both orders; before each turn the idle device is measured. The board's own counter is read from step
to step (perftests/harness/energy.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

import torch

from kernels.cases import Case
from kernels.registry import get
from perftests.harness.energy import measure_energy
from perftests.harness.record import Findings as Found
from perftests.studies.energy_told import SURE, comparisons, drawing, verdict
from perftests.studies.frame import Findings, Study, reason_of
from perftests.studies.tables import Row, Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftests.harness.chain import Outcome
    from perftests.harness.session import Bench
    from perftests.harness.workload import Workload
    from perftests.studies.frame import Scope

PAIRS = (
    ("relu", "cuda_scalar", "cuda_vector"),
    ("add", "cuda_float1", "cuda_vector"),
    ("fused_transform", "cuda_scalar", "cuda_vector"),
)
TRIALS = 3
SPARE_ROUNDS = 3
"""Further rounds for kernels of which too few trials had no gap."""
GAPLESS = 0.85
"""A trial below this share of the cold rate had gaps: the device waited for the host.

Without gaps 92 to 99 % are usual, since each launch also writes back what the last left in the L2.
"""
_ELEMENTS, _SMALL_ELEMENTS = 1 << 26, 1 << 18
_IMAGES, _SMALL_IMAGES = (85, 512, 512, 3), (1, 100, 150, 3)
_UNITS = {
    "time": "us", "back to back": "GB/s", "power": "W", "idle": "W",
    "energy": "J/GB", "error": "J/GB", "with idle": "J/GB",
}  # fmt: skip

Energy = dict[str, float | None]


@dataclass
class Load:
    """One kernel that was timed and is to be run back to back; `trials` are its energies."""

    workload: Workload
    outcome: Outcome
    launch: Callable[[], object]
    trials: list[Energy] = field(default_factory=list)
    reason: str | None = None


def load(scope: Scope, kernel: str, name: str) -> Load:
    """Time a kernel through the chain of trust and make buffers to run it on.

    Raises RuntimeError where it does not run or the chain breaks.
    """
    small = scope.small
    if kernel == "fused_transform":
        preset = {"transform": "imagenet_ycbcr"}
        shape = _SMALL_IMAGES if small else _IMAGES
        case = Case(kernel, "float32", shape, parameters=preset)
    else:
        case = Case(kernel, "float32", (_SMALL_ELEMENTS if small else _ELEMENTS,))
    implementation = get(kernel, name)
    reason = implementation.unavailable(scope.device, case.torch_dtype)
    if reason is not None:
        raise RuntimeError(reason)
    made = workload(implementation, case, scope.device)
    outcome = scope.measure(made)
    bench = scope.session.bench(scope.device)
    with bench.device.stream():
        inputs = made.make_inputs(scope.session.settings.seed)
        out = torch.empty(made.output_shape, dtype=made.output_dtype, device=scope.device)
        bench.device.synchronize()
    return Load(made, outcome, partial(made.launch, inputs, out))


def take_turns(bench: Bench, loads: Sequence[Load], trials: int) -> None:
    """Measure every load's energy once a trial, in both orders in turn, idle before each trial.

    Trials in which the device waited for the host say nothing of a kernel and are made again.
    """
    for trial in range(trials + SPARE_ROUNDS):
        wanted = [each for each in loads if len(gapless(each)) < trials]
        if not wanted:
            break
        bench.idle_power = None  # measured anew by the first of the trial
        for each in wanted if trial % 2 == 0 else wanted[::-1]:
            found = Found(each.workload, "hot")
            with bench.lock.alone(), bench.device.stream():
                measure_energy(found, bench, [each.launch], median(each.outcome.seconds))
            if found.energy is None:
                each.reason = found.reasons["energy"].removeprefix("not measured: ")
            else:
                each.trials.append(found.energy)
        if not any(each.trials for each in loads):
            return
    for each in loads:
        full = gapless(each)
        if each.trials and not full:
            each.reason = "the device waited for the host in every trial"
        each.trials = full


def gapless(each: Load) -> list[Energy]:
    """Return a kernel's trials in which launches came nearly as fast as the cold rate allows."""
    least = GAPLESS / median(each.outcome.seconds)
    return [trial for trial in each.trials if (trial["launches_per_s"] or 0.0) >= least]


def joined(trials: Sequence[Mapping[str, float | None]]) -> Energy:
    """Return the mean of several energies of one kernel, with the standard error of the mean.

    The error is the larger of what the trials' own errors leave and what their scatter shows.
    """
    names = dict.fromkeys(name for trial in trials for name in trial)
    mean: Energy = {}
    for name in names:
        values = [value for trial in trials if (value := trial.get(name)) is not None]
        mean[name] = fmean(values) if len(values) == len(trials) else None
    for name in ("j_per_gb", "gflops_per_w"):
        values = [value for trial in trials if (value := trial.get(name)) is not None]
        own = [value for trial in trials if (value := trial.get(f"{name}_error")) is not None]
        if not values or len(own) != len(values):
            continue
        within = sqrt(sum(error**2 for error in own)) / len(own)
        between = stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
        mean[f"{name}_error"] = max(within, between)
    return {**mean, "trials": float(len(trials))}


def row_of(each: Load) -> Row:
    """Return a kernel's row, and put its energy into the envelope that is kept for the store."""
    result = each.outcome.result
    seconds, moved = median(each.outcome.seconds), each.workload.bytes_moved
    row: Row = {
        "kernel": each.workload.kernel,
        "implementation": each.workload.implementation,
        "time": seconds,
    }
    if not each.trials:
        result["reasons"]["energy"] = f"not measured: {each.reason}"
        return row
    result["energy"] = energy = joined(each.trials)
    return row | _told(energy, moved)


def _told(energy: Mapping[str, Any], moved: int) -> Row:
    return {
        "back to back": energy["launches_per_s"] * moved,
        "energy": energy["j_per_gb"] / 1e9,
        "error": energy["j_per_gb_error"] / 1e9,
        "with idle": energy["power_w"] / (energy["launches_per_s"] * moved),
        "GFLOP/s per W": energy["gflops_per_w"],
        "power": energy["power_w"],
        "idle": energy["idle_power_w"],
        "trials": int(energy["trials"]),
    }


def run(scope: Scope) -> Findings:
    """Measure all kernels in turn and set each pair against each other."""
    loads: list[Load] = []
    failed = []
    for kernel, *names in PAIRS:
        for name in names:
            try:
                loads.append(load(scope, kernel, name))
            except RuntimeError as error:
                failed.append(f"{kernel}/{name}: {reason_of(error)}")
    if loads:
        take_turns(scope.session.bench(scope.device), loads, 1 if scope.small else TRIALS)
    rows = [row_of(each) for each in loads]
    reasons = sorted({each.reason for each in loads if each.reason} | set(failed))
    how = (
        "fp32; time is the cold median, all else of launches back to back for about a second in "
        "each trial; energy is power above that of the idle device over the bytes that had to "
        "move, with the standard error of the mean; trials with gaps are left out"
    )
    how += f". Left out: {'; '.join(reasons)}" if reasons else ""
    pairs = comparisons(rows, PAIRS)
    sections = [Section("Energy", how, rows, _UNITS)]
    if pairs:
        compared = (
            "What the vector kernel saves of energy and time, with standard error; negative is "
            f"what it costs; shown is a difference of {SURE:g} standard errors"
        )
        units = dict.fromkeys(("energy saved", "error", "time saved", "of board saved"), "%")
        units |= {"work per watt": "x", "scalar's power": "W", "vector's power": "W"}
        sections.append(Section("Vector against scalar", compared, pairs, units))
    draw = drawing(rows, pairs) if pairs else None
    return Findings(tuple(sections), verdict(pairs, "; ".join(reasons)), draw)


STUDY = Study(
    "energy",
    "Energy of scalar and vector kernels",
    "Elementwise optimisation in practice (article B) counts work per watt among the gains of "
    "vectorising and fusing: 1.2 to 1.8 TFLOPS/W, 1.5 times, end to end. Put to the test: does the "
    "vector kernel move a gigabyte for less energy than the scalar one?",
    run,
)
