"""What the sweep of launch shapes says: its winners, the articles' choices, and the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.cases import MIB
from kernels.tiling import loads_per_thread, threads_of
from perftests.studies.frame import measured_rows
from perftests.studies.pictures import INK
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.tables import Row

GAIN = 0.01
"""A shape this much faster than another counts as better."""
B_REGISTERS = 24
STRONG = 0.6
"""Rank correlation from which one quantity is said to go with another."""
RELU_LOADS = (1, 2, 4)
"""The loads a thread among which the suite's kernel chooses."""
COUNTED = (
    "dram throughput %",
    "occupancy %",
    "l2 hit %",
    "registers per thread",
    "sectors per load request",
)
"""The counters that are shown."""


def extremes(rows: Sequence[Row]) -> dict[tuple[str, int], tuple[Row, Row]]:
    """Return the fastest and the slowest shape of each dtype and size."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row["dtype"]), int(row["MiB"])), []).append(row)
    return {key: (min(g, key=_time), max(g, key=_time)) for key, g in groups.items()}


def _time(row: Row) -> float:
    return float(row["time"])


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's rank correlation, equal values sharing a mean rank; 0 without spread."""
    ranks = [_ranks(np.asarray(values, dtype=float)) for values in (xs, ys)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Any) -> Any:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def ranked(rows: Sequence[Row]) -> Section:
    """Return the best and the worst shape of each dtype and size, and the suite's choice."""
    told: list[Row] = []
    for (dtype, mib), (best, worst) in extremes(rows).items():
        these = [r for r in rows if r["dtype"] == dtype and r["MiB"] == mib]
        alike = sum(_time(row) <= _time(best) * (1 + GAIN) for row in these)
        row: Row = {"dtype": dtype, "MiB": mib, "best": _shape(best), "time": best["time"]}
        row |= {"of copy": best["of copy"], "as good": f"{alike} of {len(these)}"}
        chosen = suite_choice(these)
        if chosen is not None:
            row |= {"the suite's": _shape(chosen), "its time": chosen["time"]}
        told.append({**row, "worst": _shape(worst), "worst's time": worst["time"]})
    how = (
        "Threads a block x 16-byte loads a thread; `as good` are the shapes within "
        f"{GAIN:.0%} of the best; the suite's is what `kernels/tiling.py` chooses at that size"
    )
    units = {"time": "us", "of copy": "%", "its time": "us", "worst's time": "us"}
    return Section("Best, worst and the suite's choice", how, told, units)


def suite_choice(rows: Sequence[Row]) -> Row | None:
    """Return the row of the shape that the suite launches at this size, None where it is absent."""
    loads = loads_per_thread(int(rows[0]["MiB"]) * MIB, RELU_LOADS)
    found = (r for r in rows if (int(r["threads"]), int(r["loads"])) == (threads_of(loads), loads))
    return next(found, None)


def verdict(timed: Section, held: Section, seen: Section, multiprocessors: int) -> str:
    """Return winners, the articles' shapes and the reasons, from the rows.

    Without multiprocessors, on a CPU, what an SM holds explains nothing.
    """
    found = extremes(timed.rows)
    dtype, largest = next(iter(found))[0], max(mib for _, mib in found)
    first = [r for r in timed.rows if r["dtype"] == dtype]
    parts = [_winners(found, dtype), _choice(timed.rows)]
    parts.append(_articles(dtype, largest, [r for r in first if r["MiB"] == largest]))
    parts.append(_registers(measured_rows(held)))
    kept = measured_rows(held) if multiprocessors else []
    parts += [_starting(found[dtype, largest], first, measured_rows(seen))]
    parts += [_reason(mib, first, kept) for mib in sorted({m for d, m in found if d == dtype})[1:]]
    return " ".join(part for part in parts if part)


def _winners(found: Mapping[tuple[str, int], tuple[Row, Row]], dtype: str) -> str:
    told = [
        f"{_shape(best)} at {mib} MiB ({_time(worst) / _time(best) - 1:.0%} ahead of the worst)"
        for (kind, mib), (best, worst) in found.items()
        if kind == dtype
    ]
    shapes = {_shape(best) for best, _ in found.values()}
    one = "One shape wins everywhere" if len(shapes) == 1 else "No one shape wins everywhere"
    return f"{one}: with {dtype} {', '.join(told)}."


def _choice(rows: Sequence[Row]) -> str:
    """Return how far the suite's own choice is from the best, at its worst."""
    behind = []
    for (dtype, mib), (best, _) in extremes(rows).items():
        chosen = suite_choice([r for r in rows if r["dtype"] == dtype and r["MiB"] == mib])
        if chosen is not None:
            behind.append((_time(chosen) / _time(best) - 1, f"{dtype} {mib} MiB"))
    if not behind:
        return ""
    most, where = max(behind)
    return f"The suite's choice by size is at most {most:.1%} behind the best ({where})."


def _shape(row: Row) -> str:
    return f"{row['threads']} threads x{row['loads']}"


def _articles(dtype: str, mib: int, rows: Sequence[Row]) -> str:
    """Return what the articles' shapes do at one size of one dtype."""
    by = {(int(r["threads"]), int(r["loads"])): _time(r) for r in rows}
    plain = {threads: by[threads, 1] for threads in (128, 256, 512) if (threads, 1) in by}
    if len(plain) < 3 or (256, 2) not in by:
        return ""
    apart = max(plain.values()) / min(plain.values()) - 1
    wider = by[128, 1] / min(by[256, 1], by[256, 2]) - 1
    step = "gains" if wider > GAIN else "loses" if wider < -GAIN else "changes little:"
    return (
        f"At {mib} MiB {dtype}, A's 128, 256 and 512 threads are {apart:.1%} apart, which is "
        f"{'more' if apart > GAIN else 'no more'} than the {GAIN:.0%} that counts; B's step from "
        f"128 threads to 256, with one or two vectors a thread, {step} {abs(wider):.1%}."
    )


def _registers(held: Sequence[Row]) -> str:
    """Return the registers that fp32 shapes need, beside article B's step from 32 to 24."""
    needed: dict[int, set[int]] = {}
    for row in held:
        if row["dtype"] == "float32" and "registers" in row:
            needed.setdefault(int(row["loads"]), set()).add(int(row["registers"]))
    if not needed:
        return ""
    told = [f"x{loads} {'-'.join(map(str, _ends(some)))}" for loads, some in needed.items()]
    fits = [f"x{loads}" for loads, some in needed.items() if max(some) <= B_REGISTERS]
    return (
        f"Registers a thread in fp32: {', '.join(told)}; B's {B_REGISTERS} suffice for "
        f"{', '.join(fits) or 'none'}."
    )


def _ends(values: set[int]) -> list[int]:
    return sorted({min(values), max(values)})


def _starting(ends: tuple[Row, Row], rows: Sequence[Row], seen: Sequence[Row]) -> str:
    """Return whether the worst shape is the one with the smallest blocks, and what that costs."""
    best, worst = ends
    tile = int(worst["tile"])
    if tile > min(int(r["tile"]) for r in rows) or _time(worst) <= _time(best) * (1 + GAIN):
        return ""
    size = int(worst["MiB"]) * MIB
    text = (
        f"Why, at {worst['MiB']} MiB: the worst has the smallest blocks, {tile / 1024:g} KiB each, "
        f"which end before enough others have started: {_starts(size, worst):.2f} start a ns, "
        f"where the best has {_starts(size, best):.2f}"
    )
    pair = [r for r in seen if r["MiB"] == worst["MiB"] and "occupancy %" in r]
    if len(pair) == len(ends):
        held, least = (float(r["occupancy %"]) for r in pair)
        text += (
            f"; {least:.0f}% of the warps that fit an SM are on it, {held:.0f}% by the best shape"
        )
    return f"{text}."


def _starts(size: int, row: Row) -> float:
    """Return the blocks a nanosecond that a shape starts."""
    return size / int(row["tile"]) / (_time(row) * 1e9)


def _reason(mib: int, rows: Sequence[Row], held: Sequence[Row]) -> str:
    """Return what goes with the time at a size, the smallest blocks left out."""
    least = min(int(r["tile"]) for r in rows)
    these = [r for r in rows if r["MiB"] == mib and int(r["tile"]) > least]
    if not these:
        return ""
    dtype, times = these[0]["dtype"], [_time(r) for r in these]
    flight = {(int(r["threads"]), int(r["loads"])): r for r in held if r["dtype"] == dtype}
    keys = [(int(r["threads"]), int(r["loads"])) for r in these]
    told = [
        _goes("the size of a block", rank_correlation([float(r["tile"]) for r in these], times))
    ]
    if all(key in flight for key in keys):
        bytes_of = [float(flight[key]["in flight"]) for key in keys]
        told.append(_goes("the bytes in flight", rank_correlation(bytes_of, times)))
    return f"At {mib} MiB the time of the other shapes {' and '.join(told)}."


def _goes(what: str, correlation: float) -> str:
    how = "rises with" if correlation > STRONG else "falls with" if correlation < -STRONG else ""
    return f"{how or 'does not follow'} {what} (rank correlation {correlation:+.2f})"


def draw(rows: Sequence[Row], figure: Any) -> None:
    """Draw a table of shares of the copy's rate for each dtype and size, the best framed."""
    keys = list(extremes(rows))
    dtypes = list(dict.fromkeys(dtype for dtype, _ in keys))
    sizes = list(dict.fromkeys(mib for _, mib in keys))
    axes = figure.subplots(len(dtypes), len(sizes), squeeze=False)
    for (dtype, mib), (best, _) in extremes(rows).items():
        axis = axes[dtypes.index(dtype)][sizes.index(mib)]
        these = [r for r in rows if r["dtype"] == dtype and r["MiB"] == mib]
        _table(axis, these, best)
        axis.set_title(f"{dtype}, {mib} MiB: % of copy")
    for row in axes:
        row[0].set_ylabel("threads a block")
    for axis in axes[-1]:
        axis.set_xlabel("16-byte loads a thread; framed: best")


def _table(axis: Any, rows: Sequence[Row], best: Row) -> None:
    threads = sorted({int(r["threads"]) for r in rows})
    loads = sorted({int(r["loads"]) for r in rows})
    grid = np.full((len(threads), len(loads)), np.nan)
    for row in rows:
        place = threads.index(int(row["threads"])), loads.index(int(row["loads"]))
        grid[place] = float(row["of copy"])
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    # The best is a middle blue, on which dark figures can be read.
    axis.imshow(grid, cmap="Blues", aspect="auto", vmin=low, vmax=high + 0.8 * (high - low) + 1e-9)
    for (y, x), share in np.ndenumerate(grid):
        axis.text(x, y, f"{share:.1%}"[:-1], ha="center", va="center", fontsize=8, color=INK)
    won = loads.index(int(best["loads"])) - 0.5, threads.index(int(best["threads"])) - 0.5
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle(won, 1, 1, fill=False, edgecolor="#D55E00", lw=2.2))
    axis.set_xticks(range(len(loads)), [f"x{u}" for u in loads])
    axis.set_yticks(range(len(threads)), threads)
    axis.grid(visible=False)
