"""What the energies say: pairs compared, in words and as a picture."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.frame import Draw
    from perftests.studies.tables import Row

SURE = 3.0
"""A difference counts as shown from so many standard errors on."""
POWER = "'s power"


def comparisons(rows: Sequence[Row], pairs: Sequence[tuple[str, str, str]]) -> list[Row]:
    """Return what the vector kernel of each pair saves, of those whose energies are both known."""
    energies = {(r["kernel"], r["implementation"]): r for r in rows if "energy" in r}
    found: list[Row] = []
    for kernel, scalar, vector in pairs:
        if (kernel, scalar) in energies and (kernel, vector) in energies:
            found.append(_compared(energies[kernel, scalar], energies[kernel, vector]))
    return found


def _compared(scalar: Row, vector: Row) -> Row:
    ratio = _number(vector, "energy") / _number(scalar, "energy")
    error = ratio * hypot(*(_number(r, "error") / _number(r, "energy") for r in (scalar, vector)))
    return {
        "kernel": scalar["kernel"],
        "scalar": scalar["implementation"],
        "energy saved": 1 - ratio,
        "error": error,
        "of board saved": 1 - _number(vector, "with idle") / _number(scalar, "with idle"),
        "time saved": 1 - _number(vector, "time") / _number(scalar, "time"),
        "work per watt": 1 / ratio,
        f"scalar{POWER}": scalar["power"],
        f"vector{POWER}": vector["power"],
        "shown": abs(1 - ratio) >= SURE * error,
    }


def verdict(pairs: Sequence[Row], reason: str) -> str:
    """Return what the pairs say; `reason` tells why there are none, or fewer."""
    if not pairs:
        return f"Energy was not measured here: {reason or 'no pair was complete'}."
    less = [row for row in pairs if row["shown"] and _number(row, "energy saved") > 0]
    more = [row for row in pairs if row["shown"] and _number(row, "energy saved") < 0]
    if len(less) == len(pairs):
        start = "The claim holds: every vector kernel moves a gigabyte for less energy"
    elif less:
        start = f"The claim holds for {_names(less)} alone"
    else:
        start = "The claim does not hold: no vector kernel is shown to take less energy"
    start += f"; for {_names(more)} the vector kernel takes more" if more else ""
    told = " ".join(_told(row) for row in pairs)
    gains = [_number(row, "work per watt") for row in pairs]
    return (
        f"{start}. {told} Work per watt above idle is {min(gains):.2f} to {max(gains):.2f} times "
        "the scalar kernel's, where the article has 1.5 for a whole network."
        f"{f' Left out: {reason}.' if reason else ''}"
    )


def _names(rows: Sequence[Row]) -> str:
    return " and ".join(str(row["kernel"]) for row in rows)


def _told(row: Row) -> str:
    sure = "" if row["shown"] else f", within {SURE:g} standard errors: not shown"
    return (
        f"{row['kernel']}: {_change(row, 'energy saved')} energy above idle (± "
        f"{_number(row, 'error'):.1%}{sure}), {_change(row, 'of board saved')} of the whole "
        f"board's, {_change(row, 'time saved')} time, at "
        f"{_number(row, 'vector' + POWER):.0f} W against {_number(row, 'scalar' + POWER):.0f} W."
    )


def _change(row: Row, name: str) -> str:
    saved = _number(row, name)
    return f"{abs(saved):.1%} {'less' if saved >= 0 else 'more'}"


def _number(row: Row, name: str) -> float:
    value = row[name]
    assert isinstance(value, (int, float))
    return float(value)


def drawing(rows: Sequence[Row], pairs: Sequence[Row]) -> Draw:
    """Return the picture: energies with two standard errors, and what each pair saves."""
    from perftests.studies.pictures import LINES

    known = [row for row in rows if "energy" in row]

    def draw(figure: Any) -> None:
        energies, saved = figure.subplots(1, 2, width_ratios=(1.4, 1))
        at = range(len(known))
        net = [_number(row, "energy") * 1e9 for row in known]
        whole = [_number(row, "with idle") * 1e9 for row in known]
        colours = [
            LINES[1] if "vector" in str(row["implementation"]) else LINES[0] for row in known
        ]
        energies.bar(at, whole, 0.7, color="white", edgecolor=colours, label="with the idle power")
        energies.bar(
            at,
            net,
            0.7,
            color=colours,
            yerr=[2 * _number(row, "error") * 1e9 for row in known],
            ecolor=LINES[2],
            capsize=4,
            label="above idle",
        )
        names = [f"{row['kernel']}\n{row['implementation']}".replace("_", "\n") for row in known]
        energies.set_xticks(list(at), names, fontsize=8)
        energies.set_ylabel("J/GB; lines: two standard errors")
        energies.set_title("Of a gigabyte: filled above idle, outlined the board's")
        _draw_saved(saved, pairs)

    return draw


def _draw_saved(axes: Any, pairs: Sequence[Row]) -> None:
    from perftests.studies.pictures import LINES, MUTED

    for k, (name, label) in enumerate(
        (("energy saved", "energy above idle"), ("of board saved", "board"), ("time saved", "time"))
    ):
        places = [place + (k - 1) * 0.27 for place in range(len(pairs))]
        error = [200 * _number(row, "error") for row in pairs] if k == 0 else None
        heights = [100 * _number(row, name) for row in pairs]
        axes.bar(places, heights, 0.25, color=LINES[k + 3], yerr=error, capsize=4, label=label)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_xticks(range(len(pairs)), [str(row["kernel"]).replace("_", "\n") for row in pairs])
    axes.set_ylabel("%; below 0 it costs more; lines: two standard errors")
    axes.set_title("Saved by the vector kernel")
    axes.margins(y=0.22)  # room for the legend above the bars
    axes.legend(fontsize=8, loc="upper left")
