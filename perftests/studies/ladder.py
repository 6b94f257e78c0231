"""The ladder of the fused transform: each way to compute it against the eager two steps.

Time and bandwidth come through the chain of trust. Kernels and memory are of one further call: what
the profiler saw launched, and how far torch's allocator rose above input and output.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels.cases import Case
from kernels.inputs import empty_at, make_inputs
from kernels.registry import definition, implementations
from perftests.studies.frame import Findings, Study, of_this_device, reason_of
from perftests.studies.ladder_launches import Launched, launched, summary
from perftests.studies.ladder_verdict import EAGER, PUBLISHED, draw, ranged, steps, verdict
from perftests.studies.tables import Section
from perftests.suite import workload

if TYPE_CHECKING:
    from kernels.implementation import Implementation
    from perftests.studies.frame import Scope
    from perftests.studies.tables import Row

KERNEL = "fused_transform"
LARGE, SMALL = (1024, 512, 512, 3), (2, 96, 128, 3)
INPUTS = {
    "fp32": ("float32", {"transform": "imagenet_ycbcr"}),
    "uint8 to fp32": ("uint8", {"transform": "imagenet_ycbcr_255", "dtype": "float32"}),
}
CLAIM = (
    'Article A ("Elementwise optimisation on a cloud GPU") climbs from two eager steps '
    "at [1024, 512, 512, 3] fp32 to 1.15-1.3x by torch.jit.script and torch.compile, 1.4x by the "
    "folded affine form, 2.5x by a CUDA kernel with a thread a pixel and about 3x by float4, near "
    "the limit of bandwidth."
)
_PIECES = (
    "Kernels of one call, seen by torch's profiler, most of the call's time first, three names at "
    "most; launches of one name are counted together, and `time each` is their mean"
)
_UNITS = {
    "time": "ms",
    "over eager": "x",
    "bandwidth": "GB/s",
    "of copy": "%",
    "extra memory": "MiB",
}


def rungs(scope: Scope, name: str) -> tuple[Section, list[Row]]:
    """Measure every implementation on one kind of input; return also what calls launched."""
    dtype, parameters = INPUTS[name]
    case = Case(KERNEL, dtype, SMALL if scope.small else LARGE, parameters=parameters)
    pieces: list[Row] = []
    rows = [
        _rung(scope, case, implementation, pieces) for implementation in implementations(KERNEL)
    ]
    eager = next(
        (row["time"] for row in rows if row["implementation"] == EAGER and "time" in row), 0
    )
    for row in rows:
        if "time" in row and eager:
            row["over eager"] = float(eager) / float(row["time"])
    how = (
        f"{case.label}: cold medians; `of copy` over the rate of a copy that moves as many bytes; "
        "`kernels` that one call launches and its `extra memory` beyond input and output; "
        "`published` is article A's"
    )
    told: list[Row] = [{"input": name, **row} for row in pieces]
    return Section(f"The ladder, {name}", how, rows, _UNITS), told


def _rung(scope: Scope, case: Case, implementation: Implementation, pieces: list[Row]) -> Row:
    row: Row = {"implementation": implementation.name}
    reason = implementation.unavailable(scope.device, case.torch_dtype)
    if reason is not None:
        return {**row, "note": reason}
    load = workload(implementation, case, scope.device)
    try:
        outcome = scope.measure(load)
    except RuntimeError as error:
        return {**row, "note": reason_of(error)}
    seconds = median(outcome.seconds)
    row |= {"time": seconds, "over eager": 1.0, "bandwidth": load.bytes_moved / seconds}
    copy = outcome.result["peaks"].get("copy_bytes_per_s")
    if copy:
        row["of copy"] = load.bytes_moved / seconds / copy
    if scope.gpu:
        cost, seen = _cost_of_a_call(implementation, case, scope.device)
        row |= cost
        pieces += summary(implementation.name, seen)
    if implementation.name in PUBLISHED:
        row["published"] = ranged(*PUBLISHED[implementation.name])
    return row


def _cost_of_a_call(
    implementation: Implementation, case: Case, device: torch.device
) -> tuple[Row, list[Launched]]:
    """Return a call's kernels and the bytes that it allocates at its peak, and the kernels."""
    shape, dtype = definition(KERNEL).output(case)
    inputs = make_inputs(case, device, 0)
    call = partial(implementation, *inputs, out=empty_at(shape, dtype, device), **case.parameters)
    call()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    torch.cuda.synchronize(device)
    extra = torch.cuda.max_memory_allocated(device) - before
    seen = launched(call, device)
    return {"kernels": len(seen), "extra memory": extra}, seen


def run(scope: Scope) -> Findings:
    """Climb the ladder on both kinds of input."""
    found = [rungs(scope, name) for name in INPUTS]
    ladders = tuple(ladder for ladder, _ in found)
    pieces = [row for _, rows in found for row in rows]
    sections: tuple[Section, ...] = (steps(ladders), *ladders)
    if pieces:
        units = {"time each": "us", "of the call": "%"}
        sections += (Section("What a call launches", _PIECES, pieces, units),)
    text = of_this_device(scope, verdict(ladders, pieces))
    return Findings(sections, text, partial(draw, ladders))


STUDY = Study("ladder", "The ladder of the fused transform", CLAIM, run)
