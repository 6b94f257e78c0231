"""What the sweep of launch shapes says: its winners, the articles' choices, and the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perftests.studies.frame import measured_rows
from perftests.studies.pictures import INK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.tables import Row, Section

GAIN = 0.01
"""A shape this much faster than another counts as better."""
B_REGISTERS = 24
STRONG = 0.6
"""Rank correlation from which one quantity is said to go with another."""
LATENCY_S = 0.8e-6
"""Of a read under load on Hopper: what rates of kernels with 8 KiB in flight an SM imply."""
_HALF = 2  # reads are half of a copy's traffic


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


def verdict(timed: Section, held: Section, seen: Section, multiprocessors: int) -> str:
    """Return winners, the articles' shapes and the reasons, from the rows.

    Without multiprocessors, on a CPU, what an SM holds explains nothing.
    """
    found = extremes(timed.rows)
    parts = [_winners(found)]
    largest = max(mib for _, mib in found)
    for dtype in dict.fromkeys(dtype for dtype, _ in found):
        rows = [r for r in timed.rows if r["dtype"] == dtype and r["MiB"] == largest]
        parts.append(_articles(dtype, largest, rows))
    parts.append(_registers(measured_rows(held)))
    kept = measured_rows(held) if multiprocessors else []
    parts.append(_reason(largest, timed.rows, kept, multiprocessors))
    parts.append(_counters(measured_rows(seen)))
    return " ".join(part for part in parts if part)


def _winners(found: Mapping[tuple[str, int], tuple[Row, Row]]) -> str:
    told = [
        f"{dtype} {mib} MiB {_shape(best)} ({_share(best)}), "
        f"{_time(worst) / _time(best) - 1:.1%} ahead of the last, {_shape(worst)}"
        for (dtype, mib), (best, worst) in found.items()
    ]
    shapes = {_shape(best) for best, _ in found.values()}
    one = "One shape wins everywhere" if len(shapes) == 1 else "No one shape wins everywhere"
    return f"{one}: {'; '.join(told)}."


def _shape(row: Row) -> str:
    return f"{row['threads']} threads x{row['loads']}"


def _share(row: Row) -> str:
    return f"{float(row['of copy']):.1%} of a copy's rate"


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
        f"At {mib} MiB {dtype}, 128, 256 and 512 threads (A) are {apart:.1%} apart, which is "
        f"{'more' if apart > GAIN else 'no more'} than the {GAIN:.0%} that counts; going from 128 "
        f"threads to 256 with one or two vectors a thread (B) {step} {abs(wider):.1%}."
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


def _reason(mib: int, rows: Sequence[Row], held: Sequence[Row], multiprocessors: int) -> str:
    """Return what goes with the time at the largest size: the tile, or the bytes in flight."""
    flight = {
        (str(r["dtype"]), int(r["threads"]), int(r["loads"])): float(r["in flight"]) for r in held
    }
    large = [r for r in rows if r["MiB"] == mib]
    told = []
    for dtype in dict.fromkeys(str(r["dtype"]) for r in large):
        these = [r for r in large if r["dtype"] == dtype]
        tile = rank_correlation([float(r["tile"]) for r in these], [_time(r) for r in these])
        text = f"{dtype} {_goes('the size of a tile', tile)}"
        keys = [(dtype, int(r["threads"]), int(r["loads"])) for r in these]
        if all(key in flight for key in keys):
            least = rank_correlation([flight[key] for key in keys], [_time(r) for r in these])
            text += f" and {_goes('the bytes in flight', least)}"
        told.append(text)
    return (
        f"Why, at {mib} MiB: time of {'; of '.join(told)}.{_enough(held, large, multiprocessors)}"
    )


def _goes(what: str, correlation: float) -> str:
    how = "rises with" if correlation > STRONG else "falls with" if correlation < -STRONG else ""
    return f"{how or 'does not follow'} {what} (rank correlation {correlation:+.2f})"


def _enough(held: Sequence[Row], large: Sequence[Row], multiprocessors: int) -> str:
    """Return whether the least that a shape has in flight covers the latency of memory."""
    least = min((float(r["in flight"]) for r in held), default=0.0)
    if not least:
        return ""
    fastest = max(float(r["bandwidth"]) for r in large)
    needed = fastest / _HALF / multiprocessors * LATENCY_S
    fits = "so none waits for latency" if least >= needed else "so some shapes starve"
    return (
        f" The least in flight on an SM is {least / 1024:.0f} KiB; {needed / 1024:.0f} KiB cover "
        f"{LATENCY_S * 1e6:.1f} us of loaded latency at the fastest rate, {fits}."
    )


def _counters(seen: Sequence[Row]) -> str:
    if not seen:
        return "Nsight Compute's counters were not to be had here."
    sizes = [row["MiB"] for row in seen]
    pair = [row for row in seen if row["MiB"] == max(sizes, key=float)]
    names = ("dram throughput %", "occupancy %", "l2 hit %", "registers per thread")
    told = [
        f"{name} {' and '.join(f'{float(row[name]):.3g}' for row in pair)}"
        for name in names
        if all(name in row for row in pair)
    ]
    return f"Counters of the best and the worst at {pair[0]['MiB']} MiB: {', '.join(told)}."


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
    figure.supxlabel("16-byte loads a thread", fontsize=9)
    figure.supylabel("threads a block", fontsize=9)


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
