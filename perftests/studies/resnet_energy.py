"""What the study of ResNet-50 makes of the energy counter: efficiency, its errors and its words."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

from perftests.studies.pictures import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.energy import Power
    from perftests.studies.counter import Load
    from perftests.studies.resnet_report import Measured
    from perftests.studies.tables import Row

PACE = 0.05
"""A window's pace that is this far from the timed one is said to be another."""
WHOLE, WHOLE_ERROR = "GFLOP/J", "+-"
ABOVE, ABOVE_ERROR = "GFLOP/J above idle", "+- above idle"
AT_TIMED = "GFLOP/J at the timed pace"
_PUBLISHED = "published +50 %"


def rows(found: Sequence[Measured], images: int, flop: int, idle: Power | None) -> list[Row]:
    """Return a row for each way whose joules were counted. `flop` is that of an iteration."""
    return [_row(each, each.load, images, flop, idle) for each in found if each.load is not None]


def _row(each: Measured, load: Load, images: int, flop: int, idle: Power | None) -> Row:
    row: Row = {
        "way": each.name,
        "window": load.power.window_s,
        "iterations": round(load.iterations),
        "steps": load.power.steps,
        "images/s timed": images / each.iteration_s,
        "images/s in the window": images * load.per_s,
        "pace": load.per_s * each.iteration_s,
        "power": load.power.watts,
        "an iteration": load.joules,
        WHOLE: flop / load.joules / 1e9,
        WHOLE_ERROR: flop / load.joules / 1e9 * load.joules_error / load.joules,
    }
    if idle is not None and load.power.watts > idle.watts:
        net = load.joules - idle.watts / load.per_s
        error = hypot(load.joules_error, idle.error_w / load.per_s)
        row[ABOVE] = flop / net / 1e9
        row[ABOVE_ERROR] = flop / net / 1e9 * error / net
        if _another(row):
            row[AT_TIMED] = flop / (net + idle.watts * each.iteration_s) / 1e9
    if load.utilisation is not None:
        row["NVML utilisation"] = load.utilisation
    if _another(row):
        row["note"] = "the host's pace was another than when timed"
    return row


def _another(row: Row) -> bool:
    return abs(float(row["pace"]) - 1) > PACE


def as_record(each: Measured, flop: int, idle: Power | None) -> dict[str, float | None] | None:
    """Return a way's energy as the store keeps it, None where its joules were not counted.

    `gflops_per_w` is of the power above idle, as everywhere, `gflops_per_w_board` of the board's.
    """
    load = each.load
    if load is None:
        return None
    (row,) = rows([each], 1, flop, idle)
    return {
        "gflops_per_w": _known(row, ABOVE),
        "gflops_per_w_error": _known(row, ABOVE_ERROR),
        "gflops_per_w_board": _known(row, WHOLE),
        "gflops_per_w_board_error": _known(row, WHOLE_ERROR),
        "power_w": load.power.watts,
        "idle_power_w": None if idle is None else idle.watts,
        "launches_per_s": load.per_s,
        "window_s": load.power.window_s,
        "steps": float(load.power.steps),
    }


def _known(row: Row, name: str) -> float | None:
    return float(row[name]) if name in row else None


def how(idle: Power | None) -> str:
    """Return the sentence that says how the table was made."""
    text = (
        "The timed loop once more, for longer, while another process reads the board's energy "
        "counter; iterations and joules of a row are those between the same two steps of the "
        "counter, so that FLOP over joules are of the same seconds at whatever pace, and pace is "
        "the images/s in the window over those timed; errors are standard errors, from the scatter "
        "between the steps and the times between which the first and the last were seen"
    )
    if idle is None:
        return text
    return (
        f"{text}; the idle board draws {idle.watts:.1f} W (+- {idle.error_w:.1f}, before and after "
        "all ways). Where the pace is another by more than "
        f"{PACE:.0%}, `{AT_TIMED}` is what the joules above idle of an iteration and the idle "
        "board's over the timed iteration would make"
    )


def told(energies: Sequence[Row], stock: str, best: str) -> list[str]:
    """Return the sentences on efficiency, stock torch against the fastest way."""
    by_name = {str(row["way"]): row for row in energies}
    if stock not in by_name or best not in by_name:
        return []
    before, after = by_name[stock], by_name[best]
    text = f"Efficiency of the whole board goes from {_change(before, after, WHOLE, WHOLE_ERROR)}"
    if ABOVE in before and ABOVE in after:
        text += f", above idle from {_change(before, after, ABOVE, ABOVE_ERROR)}"
    sentences = [f"{text}; {_PUBLISHED}."]
    other = [f"{row['way']} {float(row['pace']):.0%}" for row in energies if _another(row)]
    if other:
        paces, at_timed = "; ".join(other), _told_at_timed([before, after])
        sentences.append(
            "A host is unsteady: while joules were counted the pace was, of the timed one, "
            f"{paces}."
        )
        sentences.append(
            "Iterations and joules are of the same seconds, so that efficiencies are of that "
            f"pace{at_timed}."
        )
    return sentences


def gain(energies: Sequence[Row], stock: str, best: str) -> float | None:
    """Return the whole board's efficiency of the fastest way over stock's, None if unknown."""
    by_name = {str(row["way"]): float(row[WHOLE]) for row in energies}
    return by_name[best] / by_name[stock] if {stock, best} <= by_name.keys() else None


def _change(before: Row, after: Row, name: str, error: str) -> str:
    """Return two efficiencies with their errors, and how much more the second is."""
    one, two = float(before[name]), float(after[name])
    ratio = two / one
    off = ratio * hypot(float(before[error]) / one, float(after[error]) / two)
    return (
        f"{one:.0f} ± {float(before[error]):.0f} to {two:.0f} ± {float(after[error]):.0f} GFLOP/s "
        f"a watt ({ratio - 1:+.0%} ± {off:.0%})"
    )


def _told_at_timed(rows: Sequence[Row]) -> str:
    known = [f"{float(row[AT_TIMED]):.0f} ({row['way']})" for row in rows if AT_TIMED in row]
    return f"; at the timed one the board would have {' and '.join(known)}" if known else ""


def draw(axes: Any, energies: Sequence[Row], names: Sequence[str]) -> None:
    """Draw efficiency of the whole board and above idle beside the ways' names."""
    by_name = {str(row["way"]): row for row in energies}
    longest = 0.0
    kinds = ((WHOLE, WHOLE_ERROR, "whole board", 3), (ABOVE, ABOVE_ERROR, "above idle", 4))
    for k, (name, error, label, colour) in enumerate(kinds):
        known = [
            (place, by_name[way])
            for place, way in enumerate(names)
            if way in by_name and name in by_name[way]
        ]
        if not known:
            continue
        values = [float(row[name]) for _, row in known]
        bars = axes.barh(
            [place + (k - 0.5) * 0.38 for place, _ in known],
            values,
            0.36,
            xerr=[float(row[error]) for _, row in known],
            color=LINES[colour],
            error_kw={"ecolor": LINES[0]},
            label=label,
        )
        axes.bar_label(bars, [f"{value:.0f}" for value in values], padding=4, fontsize=8)
        longest = max(longest, *values)
    axes.set_xlim(0, longest * 1.25)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("GFLOP/s a watt; lines: standard error")
    axes.set_title("Efficiency")
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2)


UNITS = {
    "window": "s", "pace": "%", "power": "W", "an iteration": "J", "NVML utilisation": "%",
}  # fmt: skip
