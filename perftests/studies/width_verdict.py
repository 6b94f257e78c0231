"""What the study of vector widths says: which packs gain, why three floats differ, the offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perftests.studies.frame import measured_rows
from perftests.studies.pictures import INK, LINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.tables import Row, Section

_PACKS = ("cuda_float", "cuda_half")
GAIN = 0.01
"""A pack this much faster than another counts as a gain."""
CLIFF = 1.05
"""Times this much longer than aligned ones count as a loss."""
GAINING = {"float32": ("cuda_float2", "cuda_float4"), "float16": ("cuda_half2",)}
NOT_GAINING = {"float32": ("cuda_float3",), "float16": ()}


def verdict(has: Section, times: Section, off: Section, seen: Section) -> str:
    """Return where article C's claim holds, from the rows."""
    largest = max(int(row["MiB"]) for row in times.rows)
    parts = []
    for dtype in GAINING:
        found = _by_name(times.rows, dtype, largest)
        if found:
            parts.append(_packs(dtype, largest, found))
    parts += [_code(measured_rows(has)), _counted(measured_rows(seen)), _offsets(off.rows)]
    return " ".join(part for part in parts if part) or "Nothing was timed, so nothing is said."


def _by_name(rows: Sequence[Row], dtype: str, mib: int) -> dict[str, Row]:
    return {
        str(row["implementation"]): row
        for row in rows
        if row["dtype"] == dtype and row["MiB"] == mib and "over one" in row
    }


def _packs(dtype: str, mib: int, found: Mapping[str, Row]) -> str:
    gains = {name: float(row["over one"]) for name, row in found.items()}
    right = [gains[name] > 1 + GAIN for name in GAINING[dtype] if name in gains]
    right += [gains[name] <= 1 + GAIN for name in NOT_GAINING[dtype] if name in gains]
    how = "holds" if all(right) else "holds in part" if any(right) else "does not hold"
    told = [
        f"{_short(name)} {gains[name]:.2f}x"
        for name in gains
        if name.startswith(("cuda_float", "cuda_half")) and gains[name] != 1
    ]
    best = max((name for name in gains if name.startswith(_PACKS)), key=lambda name: gains[name])
    share = float(found[best]["of copy"])
    others = [gains[name] for name in ("cuda_vector", "torch", "triton") if name in gains]
    beside = f"; the vector kernel, torch and Triton have {_range(others)}" if others else ""
    return (
        f"At {mib} MiB {dtype} the claim {how}: over one element a thread, {', '.join(told)}. The "
        f"fastest pack, {_short(best)}, is at {share:.1%} of the copy{beside}.{_three(gains)}"
    )


def _range(gains: Sequence[float]) -> str:
    low, high = f"{min(gains):.2f}", f"{max(gains):.2f}"
    return f"{high}x" if low == high else f"{low}x to {high}x"


def _three(gains: Mapping[str, float]) -> str:
    """Return how three floats stand against two and four."""
    names = ("cuda_float2", "cuda_float3", "cuda_float4")
    if any(name not in gains for name in names):
        return ""
    two, three, four = (gains[name] for name in names)
    if three > max(two, four) * (1 + GAIN):
        return " Three floats beat two and four: their width does no harm here."
    if three < min(two, four) * (1 - GAIN):
        return " Three floats lose to two and to four, as the claim has it."
    return " Three floats stand between two and four or level with one of them."


def _short(name: str) -> str:
    return name.removeprefix("cuda_") if name.startswith(_PACKS) else name


def _code(has: Sequence[Row]) -> str:
    rows = {str(row["implementation"]): row for row in has}
    if not {"cuda_float3", "cuda_float4"} <= set(rows):
        return "The machine code could not be read."
    three = rows["cuda_float3"]
    wide = int(three["widest bits"]) > 32
    how = (
        "has a wide access for three floats"
        if wide
        else "has only scalar accesses for three floats"
    )
    return (
        f"The machine code {how}: {three['loads']} bits to load two inputs, where four floats need "
        f"{rows['cuda_float4']['loads']}; a warp's load of three touches {three['sectors']} "
        f"sectors to fill {three['sectors filled']}. That costs the L1 cache requests, not the "
        "memory bytes: the other loads of the same warp find the rest there."
    )


def _counted(seen: Sequence[Row]) -> str:
    told = [
        f"{_short(str(row['implementation']))} {float(row['sectors a load']):.3g}"
        for row in seen
        if row["dtype"] == "float32" and "sectors a load" in row
    ]
    if not told:
        return ""
    held = [
        f"{_short(str(row['implementation']))} {float(row['DRAM throughput %']):.0f}%"
        for row in seen
        if row["dtype"] == "float32" and "DRAM throughput %" in row
    ]
    text = f"Nsight Compute counts sectors a load: {', '.join(told)}"
    why = (
        ". Where that is 85% or more memory is the limit and a wider pack gains nothing; below, a "
        "thread has too few bytes on their way"
    )
    return f"{text}; and of the memory's peak {', '.join(held)}{why}." if held else f"{text}."


def _offsets(rows: Sequence[Row]) -> str:
    off = [row for row in rows if row.get("offsets") != "aligned" and "over aligned" in row]
    if not off:
        return ""
    packs = [row for row in off if str(row["implementation"]).startswith(_PACKS)]
    falling = [row for row in packs if float(row["over aligned"]) > CLIFF]
    worst = max(packs, key=lambda row: float(row["over aligned"]))
    ours = [float(row["over aligned"]) for row in off if row["implementation"] == "cuda_vector"]
    steady = f"; the vector kernel's worst is {max(ours):.2f} times" if ours else ""
    return (
        f"Off the boundary, where packs fall back to one element a thread, {len(falling)} of "
        f"{len(packs)} take more than {CLIFF - 1:.0%} longer, at most "
        f"{float(worst['over aligned']):.2f} times ({_short(str(worst['implementation']))}, "
        f"{worst['offsets']}){steady}."
    )


def draw(off: Section, figure: Any) -> None:
    """Draw shares of the copy's rate by pack, one panel a dtype, aligned and misaligned."""
    dtypes = list(dict.fromkeys(str(row["dtype"]) for row in off.rows))
    axes = figure.subplots(1, len(dtypes), squeeze=False, sharey=True)[0]
    for axis, dtype in zip(axes, dtypes, strict=True):
        rows = [row for row in off.rows if row["dtype"] == dtype]
        _bars(axis, rows)
        axis.set_title(f"add, {dtype}, {rows[0]['MiB']} MiB an input")
        axis.grid(visible=False, axis="x")
    axes[0].set_ylabel("rate over a copy's")
    axes[0].legend(loc="upper left", fontsize=7.5, ncols=3)


def _bars(axis: Any, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(str(row["implementation"]) for row in rows))
    offsets = list(dict.fromkeys(str(row["offsets"]) for row in rows))
    wide = 0.8 / len(offsets)
    for which, label in enumerate(offsets):
        shift = (which - (len(offsets) - 1) / 2) * wide
        these = [row for row in rows if row["offsets"] == label]
        places = [names.index(str(row["implementation"])) + shift for row in these]
        shares = [float(row["of copy"]) for row in these]
        axis.bar(places, shares, wide * 0.92, color=LINES[which], label=label)
        for place, share in zip(places, shares, strict=True):
            style = {"ha": "center", "va": "bottom", "fontsize": 6.5, "color": INK, "rotation": 90}
            axis.text(place, share + 0.01, f"{share:.2f}", **style)
    labels = [_short(name).removeprefix("cuda_") for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=20)
    axis.margins(y=0.2)
