"""What the roofline says: which side of the ridge kernels lie on, and how near their roof."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from perftests.studies.pictures import GRID, INK, LINES, MARKS, MUTED
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.tables import Row

NEAR_ROOF = 0.9
"""A kernel at this share of what is attainable is at its roof."""
FLAT = 0.95
"""The share of a copy's rate down to which the roof's slope counts as straight."""
CORNER = 4
"""Points within this factor of the ridge tell of the corner."""
SAME = 0.02
OURS = "cuda_vector"


def verdict(
    over: Sequence[Row], points: Sequence[Row], traced: Sequence[Row], gpus: Sequence[Row]
) -> str:
    """Return whether kernels are memory-bound here, the model holds, and the ridges are right."""
    parts = (_ridge(over, points), _roof(points), _model(traced, over), _articles(gpus))
    return " ".join(part for part in parts if part)


def _ridge(over: Sequence[Row], points: Sequence[Row]) -> str:
    known = [row for row in points if "attainable" in row]
    if not known:
        return "No kernel was timed."
    ridges = [f"{float(row['ridge']):.1f} ({row['roof']})" for row in over]
    least = min(float(row["ridge"]) for row in over)
    top = max(known, key=lambda row: float(row["intensity"]))
    most = float(top["intensity"])
    how = "holds" if most < least else "does not hold"
    side = "left" if most < least else "right"
    return (
        f"The claim that elementwise kernels are bound by memory {how} here: the ridge is at "
        f"{', '.join(ridges)} FLOP a byte, and the kernel of most intensity, {_name(top)}, has "
        f"{most:.3g}, {side} of it."
    )


def _name(row: Row) -> str:
    return f"{row['kernel']} {row['dtype']}"


def _roof(points: Sequence[Row]) -> str:
    ours = [row for row in points if row["implementation"] == OURS and "of attainable" in row]
    if not ours:
        return ""
    shares = [float(row["of attainable"]) for row in ours]
    below = [
        f"{_name(row)} {float(row['of attainable']):.1%}"
        for row in ours
        if float(row["of attainable"]) < NEAR_ROOF
    ]
    told = f"below {NEAR_ROOF:.0%}: {', '.join(below)}" if below else f"none below {NEAR_ROOF:.0%}"
    text = (
        f"Our kernels reach {min(shares):.0%} to {max(shares):.0%} of what bandwidth times "
        f"intensity allows, {told}."
    )
    if max(shares) > 1:
        text += (
            " More than all of it is no error: the yardstick is a copy, half of whose bytes are "
            "writes, and kernels that read more than they write are faster."
        )
    return f"{text}{_peers(points)}"


def _peers(points: Sequence[Row]) -> str:
    """Return how torch splits into kernels at their roof and forms of several passes."""
    theirs = [row for row in points if row["implementation"] != OURS and "of attainable" in row]
    at = [row for row in theirs if float(row["of attainable"]) >= NEAR_ROOF]
    low = [row for row in theirs if row not in at]
    if not low:
        return ""
    names = ", ".join(dict.fromkeys(str(row["kernel"]) for row in low))
    worst, best = (f(float(row["of attainable"]) for row in low) for f in (min, max))
    count = f"{len(at) or 'none'} of {len(theirs)} cases"
    start = f" Torch reaches {NEAR_ROOF:.0%} or more in {count}"
    return (
        f"{start}; where it passes over memory more than once, or has no vector kernel ({names}), "
        f"it gets {worst:.0%} to {best:.0%}."
    )


def shares(points: Sequence[Row]) -> Section:
    """Return ours and torch's share of what is attainable, one row for each kernel and dtype."""
    rows: dict[tuple[str, str], Row] = {}
    for row in points:
        key = str(row["kernel"]), str(row["dtype"])
        mine = rows.setdefault(key, {"kernel": key[0], "dtype": key[1]})
        if "of attainable" in row:
            mine |= {"FLOP a byte": f"{float(row['intensity']):.3g}"}
            mine["ours" if row["implementation"] == OURS else "torch"] = row["of attainable"]
    how = "What each kernel reaches of what is attainable at its intensity; torch eager"
    return Section("Shares of the roof", how, list(rows.values()), {"ours": "%", "torch": "%"})


def _model(traced: Sequence[Row], over: Sequence[Row]) -> str:
    """Return up to which intensity the measured roof is the straight line of the model."""
    measured = next((row for row in over if row["roof"] == "measured"), None)
    straight = [row for row in traced if float(row["of copy"]) >= FLAT]
    if measured is None or not traced:
        return ""
    ridge = float(measured["ridge"])
    reach = max((float(row["intensity"]) for row in straight), default=0.0)
    corner = min(traced, key=lambda row: abs(log(float(row["intensity"]) / ridge)))
    where = f"to {FLAT:.0%} up to {reach:.3g} FLOP a byte" if straight else "at no point measured"
    text = f"The model's slope, bandwidth whatever the intensity, holds {where}"
    text += f"; the measured ridge is at {ridge:.3g}"
    at = float(corner["intensity"])
    if not ridge / CORNER <= at <= ridge * CORNER:
        return f"{text}."
    roof = min(float(measured["fp32"]), at * float(measured["bandwidth"]))
    reached = float(corner["FLOP rate"]) / roof
    how = "is sharp" if reached >= FLAT else "is rounded"
    return (
        f"{text}; its corner {how}: at {at:.3g} FLOP a byte, the measured point next to the ridge, "
        f"{reached:.0%} of the roof is reached."
    )


def _articles(gpus: Sequence[Row]) -> str:
    """Return which published ridges follow from their data sheets, and from which precision."""
    told = []
    for row in gpus:
        if "ridge published" not in row:
            continue
        published = float(row["ridge published"])
        fits = [
            kind
            for kind in ("fp32", "fp64")
            if abs(float(row[f"ridge {kind}"]) / published - 1) <= SAME
        ]
        if "fp32" in fits:
            how = "which its fp32 rate gives"
        elif fits:
            how = f"which its fp64 rate gives; fp32 has {float(row['ridge fp32']):.1f}"
        else:
            how = f"which no rate of its data sheet gives (fp32 {float(row['ridge fp32']):.1f})"
        told.append(f"article {row['article']} has {published:g} for the {row['name']}, {how}")
    return f"Of the published ridges, {'; '.join(told)}." if told else ""


def draw(
    over: Sequence[Row],
    points: Sequence[Row],
    traced: Sequence[Row],
    gpus: Sequence[Row],
    figure: Any,
) -> None:
    """Draw roofs, the traced roofline, the kernels and the articles' roofs, both scales log."""
    axis, bars = figure.subplots(1, 2, width_ratios=(1.7, 1))
    axis.set_xscale("log")
    axis.set_yscale("log")
    known = [row for row in points if "attainable" in row]
    left = min([0.06, *(float(row["intensity"]) for row in known)])
    right = max([64.0, *(float(row["intensity"]) for row in traced)]) * 1.3
    for row in gpus:
        _roof_line(axis, row, (left, right), color="#B5B3B0", lw=1.0)
        top = row is max(gpus, key=lambda gpu: float(gpu["fp32"]))
        where = right, float(row["fp32"]) / 1e9 * (1.13 if top else 0.87)
        axis.text(*where, f"{str(row['name']).split()[0]}, data sheet", ha="right", **_SMALL)
    for row in over:
        style = _STYLES.get(str(row["roof"]), "-")
        label = f"roof, {row['roof']}"
        _roof_line(axis, row, (left, right), color=INK, lw=1.3, ls=style, label=label)
    xs, ys = _xy(traced)
    axis.plot(xs, ys, color=LINES[2], lw=1.2, marker="x", ms=5, label="K multiply-adds, measured")
    _kernels(axis, known)
    axis.set_xlabel("FLOP a byte")
    axis.set_ylabel("GFLOP/s")
    axis.grid(visible=True, which="major", color=GRID)
    axis.set_title("filled: ours, hollow: torch")
    axis.legend(loc="upper left", fontsize=7)
    _share_bars(bars, shares(points).rows)


def _share_bars(axis: Any, rows: Sequence[Row]) -> None:
    """Draw each share of the roof: markers lie on each other where kernels are at it."""
    names = []
    for place, row in enumerate(reversed(rows)):
        names.append(f"{row['kernel']} {_SHORT.get(str(row['dtype']), row['dtype'])}")
        for shift, who, colour in ((0.2, "ours", LINES[1]), (-0.2, "torch", LINES[0])):
            if who in row:
                share = float(row[who])
                axis.barh(place + shift, share, 0.36, color=colour)
                text = f" {share:.0%}"
                axis.text(share, place + shift, text, va="center", fontsize=6.5, color=INK)
    axis.set_yticks(range(len(names)), names, fontsize=7.5)
    axis.set_xlim(0, 1.25)
    axis.set_xticks((0, 0.5, 1), ("0", "50%", "100%"))
    axis.grid(visible=False, axis="y")
    axis.set_title("of the roof; blue: ours, black: torch", fontsize=9)


_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


_STYLES = {"theoretical": "--", "measured": "-", "measured, two reads a write": ":"}
_SMALL: dict[str, Any] = {"fontsize": 7.5, "color": MUTED, "va": "center"}


def _xy(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return [float(r["intensity"]) for r in rows], [float(r["FLOP rate"]) / 1e9 for r in rows]


def _roof_line(axis: Any, row: Row, ends: tuple[float, float], **style: Any) -> None:
    rate, top = float(row["bandwidth"]), float(row["fp32"])
    xs = (ends[0], top / rate, ends[1])
    axis.plot(xs, [min(top, x * rate) / 1e9 for x in xs], **style)


def _kernels(axis: Any, known: Sequence[Row]) -> None:
    names = list(dict.fromkeys(str(row["kernel"]) for row in known))
    for place, name in enumerate(names):
        look = {"color": LINES[place % len(LINES)], "marker": MARKS[place % len(MARKS)], "ls": ""}
        for ours in (True, False):
            rows = [
                r for r in known if r["kernel"] == name and (r["implementation"] == OURS) == ours
            ]
            xs, ys = _xy(rows)
            label = name if ours else None
            fill = look["color"] if ours else "white"
            axis.plot(xs, ys, ms=6, markerfacecolor=fill, zorder=3, label=label, **look)
