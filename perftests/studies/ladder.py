"""The ladder of the fused transform: each way to compute it against the eager two steps.

Time and bandwidth come through the chain of trust. Kernels and memory are of one further call: what
the profiler saw launched, and how far torch's allocator rose above input and output.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from kernels.cases import Case
from kernels.inputs import empty_at, make_inputs
from kernels.registry import definition, implementations
from perftests.studies.frame import Findings, Study, of_this_device, reason_of
from perftests.studies.pictures import INK, LINES, MUTED
from perftests.studies.tables import Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kernels.implementation import Implementation
    from perftests.studies.frame import Scope
    from perftests.studies.tables import Row

KERNEL, EAGER = "fused_transform", "torch_eager"
LARGE, SMALL = (1024, 512, 512, 3), (2, 96, 128, 3)
INPUTS = {
    "fp32": ("float32", {"transform": "imagenet_ycbcr"}),
    "uint8 to fp32": ("uint8", {"transform": "imagenet_ycbcr_255", "dtype": "float32"}),
}
PUBLISHED = {
    "torch_jit": (1.15, 1.30),
    "torch_compile": (1.15, 1.30),
    "torch_folded": (1.4, 1.4),
    "cuda_scalar": (2.5, 2.5),
    "cuda_direct": (3.0, 3.0),
}
"""Speed-ups over eager that article A gives, by the implementation that is its own step here."""
STEPS = {
    "torch_jit": "torch.jit.script",
    "torch_compile": "torch.compile",
    "torch_folded": "the folded form",
    "cuda_scalar": "a CUDA thread a pixel",
    "cuda_direct": "float4 accesses",
}
NEAR = 0.1
"""A speed-up this close to the published range counts as published."""
CLAIM = (
    'Article A ("Elementwise optimisation on a cloud GPU") climbs from two eager steps '
    "at [1024, 512, 512, 3] fp32 to 1.15-1.3x by torch.jit.script and torch.compile, 1.4x by the "
    "folded affine form, 2.5x by a CUDA kernel with a thread a pixel and about 3x by float4, near "
    "the limit of bandwidth."
)
_UNITS = {
    "time": "ms",
    "over eager": "x",
    "bandwidth": "GB/s",
    "of copy": "%",
    "extra memory": "MiB",
}


def rungs(scope: Scope, name: str) -> Section:
    """Measure every implementation on one kind of input."""
    dtype, parameters = INPUTS[name]
    case = Case(KERNEL, dtype, SMALL if scope.small else LARGE, parameters=parameters)
    rows = [_rung(scope, case, implementation) for implementation in implementations(KERNEL)]
    eager = next(
        (row["time"] for row in rows if row["implementation"] == EAGER and "time" in row), 0
    )
    for row in rows:
        if "time" in row and eager:
            row["over eager"] = float(eager) / float(row["time"])
    how = (
        f"{case.label}: cold medians; `of copy` over the rate of a copy that moves as many bytes; "
        "`kernels` of one call and `extra memory` beyond input and output on a GPU; `published` is "
        "article A's"
    )
    return Section(f"The ladder, {name}", how, rows, _UNITS)


def _rung(scope: Scope, case: Case, implementation: Implementation) -> Row:
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
        row |= _cost_of_a_call(implementation, case, scope.device)
    if implementation.name in PUBLISHED:
        row["published"] = _range(*PUBLISHED[implementation.name])
    return row


def _cost_of_a_call(implementation: Implementation, case: Case, device: torch.device) -> Row:
    """Return the kernels that one call launches, and the bytes that it allocates at its peak."""
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
    return {"kernels": launched(call, device), "extra memory": extra}


def launched(call: Callable[[], object], device: torch.device) -> int:
    """Return how many kernels a call launches, copies and fills by the driver not counted."""
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize(device)
    return sum(
        event.device_type == DeviceType.CUDA
        and not getattr(event, "is_user_annotation", False)
        and is_kernel(event.name)
        for event in seen.events()
    )


def is_kernel(name: str) -> bool:
    """Whether a device-side event of the profiler, by its name, is a kernel."""
    return not name.startswith(("Memcpy", "Memset", "Context Sync", "Stream ", "Event "))


def _range(low: float, high: float) -> str:
    return f"{low:g}x" if low == high else f"{low:g}-{high:g}x"


def verdict(sections: Sequence[Section]) -> str:
    """Return where the published ladder holds, from its rows."""
    told = [_of_input(section) for section in sections]
    return " ".join(text for text in told if text) or "Nothing was timed, so nothing is said."


def _of_input(section: Section) -> str:
    rows = {str(row["implementation"]): row for row in section.rows if "time" in row}
    if EAGER not in rows:
        return ""
    name = section.title.removeprefix("The ladder, ")
    verdicts: dict[str, list[str]] = {"as published": [], "more": [], "less": []}
    for step, (low, high) in PUBLISHED.items():
        if step in rows:
            found = float(rows[step]["over eager"])
            kind = "less" if found < low * (1 - NEAR) else "as published"
            kind = "more" if found > high * (1 + NEAR) else kind
            verdicts[kind].append(f"{STEPS[step]} {found:.2f}x (published {_range(low, high)})")
    parts = [f"{kind}: {', '.join(texts)}" for kind, texts in verdicts.items() if texts]
    best = max(rows, key=lambda name: float(rows[name]["over eager"]))
    return (
        f"With {name}, against the claim: {'; '.join(parts) or 'no published step ran'}. "
        f"{_order(rows)} The best is {best} at {float(rows[best]['over eager']):.2f}x"
        f"{_of_copy(rows[best])}."
    )


def _of_copy(row: Row) -> str:
    return f", {float(row['of copy']):.1%} of a copy's rate" if "of copy" in row else ""


def _order(rows: dict[str, Row]) -> str:
    """Return whether each published step beats the one below it here."""
    ladder = [step for step in (EAGER, *PUBLISHED) if step in rows and step != "torch_jit"]
    fallen = [
        f"{STEPS[upper]} does not beat {STEPS.get(lower, 'eager')}"
        for lower, upper in pairwise(ladder)
        if float(rows[upper]["over eager"]) <= float(rows[lower]["over eager"])
    ]
    if not fallen:
        return "The order of the published steps holds."
    return f"The order of the published steps does not hold: {', '.join(fallen)}."


def draw(sections: Sequence[Section], figure: Any) -> None:
    """Draw speed-ups as bars, the published ranges as orange marks below them."""
    timed = [[row for row in section.rows if "time" in row] for section in sections]
    every = [str(row["implementation"]) for rows in timed for row in rows]
    names = list(dict.fromkeys(every))[::-1]
    axes = figure.subplots(1, len(sections), sharey=True, squeeze=False)[0]
    for axis, section, rows in zip(axes, sections, timed, strict=True):
        for row in rows:
            _bar(axis, names.index(str(row["implementation"])), row)
        axis.axvline(1.0, color=MUTED, lw=0.8)
        axis.set_xlim(0, max([3.2, *(float(row["over eager"]) for row in rows)]) * 1.42)
        axis.set_xlabel("speed-up over torch eager; orange: published")
        axis.set_title(section.title.removeprefix("The ladder, "))
        axis.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(names)), names)


def _bar(axis: Any, place: int, row: Row) -> None:
    name, value = str(row["implementation"]), float(row["over eager"])
    axis.barh(place, value, color=LINES[1 if name.startswith("cuda") else 0], height=0.5)
    if name in PUBLISHED:
        low, high = PUBLISHED[name]
        axis.plot([low, max(high, low + 0.05)], [place - 0.38] * 2, color=LINES[2], lw=4)
    share = f"  {float(row['of copy']):.0%} of copy" if "of copy" in row else ""
    axis.text(value, place, f" {value:.2f}x{share}", va="center", fontsize=8, color=INK)


def run(scope: Scope) -> Findings:
    """Climb the ladder on both kinds of input."""
    sections = tuple(rungs(scope, name) for name in INPUTS)
    text = of_this_device(scope, verdict(sections))
    return Findings(sections, text, partial(draw, sections))


STUDY = Study("ladder", "The ladder of the fused transform", CLAIM, run)
