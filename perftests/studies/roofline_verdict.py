"""What the roofline says: which side of the ridge kernels lie on, and how near their roof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perftests.studies.pictures import GRID, INK, LINES, MARKS, MUTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.tables import Row

NEAR_ROOF = 0.9
"""A kernel at this share of what is attainable is at its roof."""
FLAT = 0.95
"""The share of a copy's rate down to which the roof's slope counts as straight."""
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
    ridges = [f"{float(row['ridge']):.3g} ({row['roof']})" for row in over]
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
    return (
        f"Our kernels reach {min(shares):.1%} to {max(shares):.1%} of what bandwidth times "
        f"intensity allows; {told}."
    )


def _model(traced: Sequence[Row], over: Sequence[Row]) -> str:
    """Return up to which intensity the measured roof is the straight line of the model."""
    measured = next((row for row in over if row["roof"] == "measured"), None)
    straight = [row for row in traced if float(row["of copy"]) >= FLAT]
    if measured is None or not traced:
        return ""
    ridge = float(measured["ridge"])
    reach = max((float(row["intensity"]) for row in straight), default=0.0)
    corner = [row for row in traced if ridge / 4 <= float(row["intensity"]) <= ridge]
    dip = min((float(row["of copy"]) for row in corner), default=1.0)
    where = f"holds to {FLAT:.0%} up to {reach:.3g} FLOP a byte" if straight else "holds nowhere"
    text = f"The model's slope, bandwidth whatever the intensity, {where}"
    text += f", of a measured ridge of {ridge:.3g}"
    return (
        f"{text}; near the ridge the rate falls to {dip:.0%} of a copy's." if corner else f"{text}."
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
    axis = figure.subplots()
    axis.set_xscale("log")
    axis.set_yscale("log")
    known = [row for row in points if "attainable" in row]
    left = min([0.06, *(float(row["intensity"]) for row in known)])
    right = max([64.0, *(float(row["intensity"]) for row in traced)]) * 1.3
    for row in gpus:
        _roof_line(axis, row, (left, right), color="#B5B3B0", lw=1.0)
        axis.text(right, float(row["fp32"]) / 1e9, f" {str(row['name']).split()[0]}", **_SMALL)
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
    axis.set_title("filled: ours, hollow: torch; grey: the articles' GPUs by their data sheets")
    axis.legend(loc="upper left", fontsize=7.5, ncols=2)


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
