"""What the rows of the conversion study say, in words and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.frame import Draw
    from perftests.studies.tables import Row

_SAME = 0.02
"""Up to this difference in time two roundings count as equally fast."""
_OURS = "cuda_vector"
_ROUNDINGS = ("rn", "rz", "ru", "rd")


def verdict(differ: Sequence[Row], times: Sequence[Row]) -> str:
    """Return what the rows say of where the roundings differ and of what they cost."""
    told = [_of_results(differ, target) for target in _names(differ, "to")]
    sizes = sorted({int(row["MiB"]) for row in times})
    told += [_of_times(times, mib) for mib in sizes]
    return " ".join(told) or "Nothing was converted here."


def _names(rows: Sequence[Row], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows))


def _of_results(rows: Sequence[Row], target: str) -> str:
    mine = {str(row["fp32 input"]): row for row in rows if row["to"] == target}
    wrong = sum(int(row["wrong"]) for row in mine.values())
    results = len(_ROUNDINGS) * sum(int(row["numbers"]) for row in mine.values())
    right = (
        f"all {results:,} results are the reference's, bit for bit"
        if wrong == 0
        else f"{wrong:,} of {results:,} results are wrong"
    )
    between = [row for kind, row in mine.items() if kind != "the number"]
    below, tie, above = (
        _share([mine[kind]], "rn != rz")
        for kind in ("just below the tie", "the tie", "just above the tie")
    )
    return (
        f"To {target} {right}; rn and rz differ on {below:.0%} of what lies below a tie, {tie:.0%} "
        f"of the ties and {above:.0%} of what lies above, ru and rd on "
        f"{_share(between, 'ru != rd'):.0%} of all that has to be rounded."
    )


def _share(rows: Sequence[Row], column: str) -> float:
    return sum(int(row[column]) for row in rows) / sum(int(row["numbers"]) for row in rows)


def _of_times(rows: Sequence[Row], mib: int) -> str:
    ours = [row for row in rows if row["MiB"] == mib and row["implementation"] == _OURS]
    changes: dict[str, tuple[float, float]] = {}
    for target in _names(ours, "to"):
        times = {str(r["rounding"]): float(r["time"]) for r in ours if r["to"] == target}
        others = [times[r] / times["rn"] - 1 for r in times if r != "rn" and "rn" in times]
        if others:
            changes[target] = min(others), max(others)
    if not changes:
        return f"At {mib} MiB no time was measured."
    told = " and ".join(f"{low:+.1%} to {high:+.1%} ({t})" for t, (low, high) in changes.items())
    most = max(abs(change) for pair in changes.values() for change in pair)
    free = "the choice costs no time" if most <= _SAME else "the choice matters"
    of_copy = [float(row["of copy"]) for row in ours if "of copy" in row]
    share = ""
    if of_copy:
        share = f"; all are at {min(of_copy):.0%} to {max(of_copy):.0%} of a copy's rate"
    return f"At {mib} MiB {free}: the others' times differ from rn's by {told}{share}."


def drawing(steps: Mapping[str, list[float]], times: Sequence[Row]) -> Draw:
    """Return the picture: the four staircases about zero, and the rates."""
    from perftests.studies.pictures import LINES, MUTED

    def draw(figure: Any) -> None:
        stairs, rates = figure.subplots(1, 2, width_ratios=(1.1, 1))
        for k, (rounding, style) in enumerate(zip(_ROUNDINGS, ("-", "--", "-.", ":"), strict=True)):
            shift = (k - 1.5) * 0.04  # apart, where they lie on each other
            y = [value + shift for value in steps[rounding]]
            stairs.plot(steps["x"], y, style, color=LINES[k], linewidth=1.8, label=rounding)
        stairs.plot(steps["x"], steps["x"], color=MUTED, linewidth=0.8, label="exact")
        stairs.set_title("fp16 next to zero")
        stairs.set_xlabel("fp32 input, units of 2$^{-24}$")
        stairs.set_ylabel("result, units of 2$^{-24}$")
        stairs.legend()
        _draw_rates(rates, times)

    return draw


def _draw_rates(axes: Any, times: Sequence[Row]) -> None:
    from perftests.studies.pictures import LINES

    groups = list(dict.fromkeys((str(row["to"]), int(row["MiB"])) for row in times))
    columns = [(r, _OURS) for r in _ROUNDINGS] + [("rn", "torch")]
    width = 0.8 / len(columns)
    for k, (rounding, name) in enumerate(columns):
        places, heights = [], []
        for place, (target, mib) in enumerate(groups):
            found = [
                float(row["rate"]) / 1e9
                for row in times
                if (row["to"], row["MiB"]) == (target, mib)
                and (row["rounding"], row["implementation"]) == (rounding, name)
            ]
            places += [place + (k - 2) * width] * len(found)
            heights += found
        label = rounding if name == _OURS else "torch, rn"
        axes.bar(places, heights, width * 0.9, color=LINES[k], label=label)
    axes.set_xticks(range(len(groups)), [f"{target}\n{mib} MiB" for target, mib in groups])
    axes.set_ylabel("GB/s read and written")
    axes.set_title("Rate of each rounding")
    axes.margins(y=0.25)  # room for the legend above the bars
    axes.legend(ncols=3, fontsize=8, loc="upper left")
