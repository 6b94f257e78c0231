"""What the ladder says: the published steps beside ours, what is best and why, and the picture."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from perftests.studies.pictures import INK, LINES, MUTED
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.tables import Row

EAGER = "torch_eager"
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
_LOSE = {"cuda_direct": "lose"}
"""The verb of a step whose name is a plural."""
NEAR = 0.02
"""A speed-up this close to the published range counts as published."""
_MANY, _MOST = 100, 0.5


def ranged(low: float, high: float) -> str:
    """Return a published range in words."""
    return f"{low:g}x" if low == high else f"{low:g}-{high:g}x"


def judged(step: str, found: float) -> str:
    """Return how a step's speed-up stands to the published one."""
    low, high = PUBLISHED[step]
    if found < low * (1 - NEAR):
        return "less"
    return "more" if found > high * (1 + NEAR) else "as published"


def steps(sections: Sequence[Section]) -> Section:
    """Return the published steps beside the speed-ups found, one row a step."""
    rows: list[Row] = []
    for step, (low, high) in PUBLISHED.items():
        row: Row = {"step": STEPS[step], "implementation": step, "published": ranged(low, high)}
        for section in sections:
            timed = _timed(section)
            if step in timed and EAGER in timed:
                found = float(timed[step]["over eager"])
                row[_input(section)] = f"{found:.2f}x, {judged(step, found)}"
        rows.append(row)
    how = f"Speed-up over eager; within {NEAR:.0%} of the published range counts as published"
    return Section("Published and found", how, rows)


def _timed(section: Section) -> dict[str, Row]:
    return {str(row["implementation"]): row for row in section.rows if "time" in row}


def _input(section: Section) -> str:
    return section.title.removeprefix("The ladder, ")


def verdict(sections: Sequence[Section], pieces: Sequence[Row] = ()) -> str:
    """Return where the published ladder holds and why the best is best, from the rows."""
    told = [_of_input(section, pieces, first=k == 0) for k, section in enumerate(sections)]
    return " ".join(text for text in told if text) or "Nothing was timed, so nothing is said."


def _of_input(section: Section, pieces: Sequence[Row], *, first: bool) -> str:
    rows = _timed(section)
    if EAGER not in rows:
        return ""
    best = max(rows, key=lambda name: float(rows[name]["over eager"]))
    mine = [row for row in pieces if row["input"] == _input(section)]
    name = _input(section)
    parts = [_of_best(section, rows, best), _of_steps(name, rows), _order(name, rows)]
    if first:  # the reasons are those of every input
        parts += [
            _of_eager(rows[EAGER], mine),
            _of_folded(rows, mine),
            _of_compiled(rows),
            _why(rows, best),
        ]
    return " ".join(part for part in parts if part)


def _of_best(section: Section, rows: Mapping[str, Row], best: str) -> str:
    won = rows[best]
    level = [
        name
        for name, row in rows.items()
        if name != best and float(row["time"]) <= float(won["time"]) * (1 + NEAR)
    ]
    beside = f" ({', '.join(level)} within {NEAR:.0%})" if level else ""
    return (
        f"With {_input(section)} the best is {best} at {float(won['over eager']):.1f}x"
        f"{_of_copy(won)}{beside}."
    )


def _of_copy(row: Row) -> str:
    return f", {float(row['of copy']):.1%} of a copy's rate" if "of copy" in row else ""


def _of_steps(name: str, rows: Mapping[str, Row]) -> str:
    kinds: dict[str, list[str]] = {}
    for step in PUBLISHED:
        if step in rows:
            found = float(rows[step]["over eager"])
            kinds.setdefault(judged(step, found), []).append(f"{STEPS[step]} ({found:.2f}x)")
    says = {"as published": "as published", "more": "more than published", "less": "less than that"}
    told = [f"{', '.join(kinds[kind])} {says[kind]}" for kind in says if kind in kinds]
    if not told:
        return "No published step ran."
    return f"With {name} the published steps gain: {'; '.join(told)}."


def _order(name: str, rows: Mapping[str, Row]) -> str:
    """Return whether each published step beats the one below it here."""
    ladder = [step for step in (EAGER, *PUBLISHED) if step in rows and step != "torch_jit"]
    fallen = [
        f"{STEPS[upper]} {_LOSE.get(upper, 'loses')} to {STEPS.get(lower, 'eager')}"
        for lower, upper in pairwise(ladder)
        if float(rows[upper]["over eager"]) <= float(rows[lower]["over eager"])
    ]
    if not fallen:
        return f"With {name} their order holds."
    return f"With {name} their order differs: {', '.join(fallen)}."


def _of_eager(eager: Row, pieces: Sequence[Row]) -> str:
    """Return what eager torch's many launches are, where the profiler saw them."""
    mine = [row for row in pieces if row["implementation"] == EAGER]
    if not mine or int(eager["kernels"]) < _MANY:
        return ""
    most = max(mine, key=lambda row: int(row["launches"]))
    moved = float(eager["bandwidth"]) * float(eager["time"])
    passes = 1 + 2 * float(eager["extra memory"]) / moved
    return (
        f"Temporaries, each written and read again, make eager move {passes:.1f} times the bytes "
        f"of one pass; beyond that, {most['launches']} of its {eager['kernels']} kernels are one "
        f"matrix product of three columns, which the library cuts into pieces ({most['kernel']}), "
        f"{float(most['of the call']):.0%} of the call."
    )


def _of_folded(rows: Mapping[str, Row], pieces: Sequence[Row]) -> str:
    """Return which kernel makes the folded form slower than eager, where it is."""
    mine = [row for row in pieces if row["implementation"] == "torch_folded"]
    if not mine or "torch_folded" not in rows or float(rows["torch_folded"]["over eager"]) >= 1:
        return ""
    return (
        "The folded form loses in the library too: its product with a bias is "
        f"{mine[0]['kernel']}, {float(mine[0]['of the call']):.0%} of its call."
    )


def _of_compiled(rows: Mapping[str, Row]) -> str:
    """Return what the compiled two steps still pass over, where they keep a buffer."""
    row = rows.get("torch_compile")
    if row is None or not row.get("extra memory") or int(row["kernels"]) == 1:
        return ""
    return (
        f"torch.compile keeps {_mib(row)} MiB between its {row['kernels']} kernels: what it "
        "computes is written, read and written again."
    )


def _why(rows: Mapping[str, Row], best: str) -> str:
    """Return why the best wins: what it does not move, and how near the copy that puts it."""
    won, eager = rows[best], rows[EAGER]
    if "extra memory" not in won or "of copy" not in won:
        return ""
    text = (
        f"{best} wins because one pass is all it makes: {won['kernels']} kernel and "
        f"{_mib(won)} MiB of temporaries against eager's {_mib(eager)}"
    )
    direct, scalar = rows.get("cuda_direct"), rows.get("cuda_scalar")
    if direct and scalar and float(direct["time"]) > float(scalar["time"]):
        text += (
            "; and because neighbouring threads touch neighbouring bytes: float4 accesses, 48 "
            "bytes or more apart, touch twice the sectors that they use and lose to 4-byte ones"
        )
    return f"{text}."


def _mib(row: Row) -> str:
    return f"{float(row['extra memory']) / 2**20:.0f}"


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
        axis.set_xlim(0, max([3.2, *(float(row["over eager"]) for row in rows)]) * 1.75)
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
    axis.text(value, place, f" {value:.2f}x{share}", va="center", fontsize=7.5, color=INK)
