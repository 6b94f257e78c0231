"""Whether a cell of the roof study reached its goal, with the error of the comparison beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from perftests.studies.roof_cells import OURS, Cell
from perftests.studies.roof_measured import ALIGNED, DRIVER, Measured, Ratio, ratio_of

if TYPE_CHECKING:
    from perftests.studies.tables import Row

SLOWER = 0.01
"""How much slower than the best peer a cell may be."""
ERRORS = 2
"""Standard errors by which a goal may be missed and not be told from being reached."""
WITHIN = "within error"
Verdict: TypeAlias = "bool | str"


@dataclass(frozen=True)
class Judged:
    """One goal as text with what was found, and whether it is met: yes, no, or cannot be told."""

    text: str
    verdict: Verdict


def at_least(found: Ratio, least: float) -> Verdict:
    """Return whether a ratio is at least a goal, or misses it by less than its error."""
    if found.value >= least:
        return True
    return WITHIN if found.value + ERRORS * found.error >= least else False


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return no if any is no, else the doubt if any is in doubt."""
    if False in verdicts:
        return False
    return WITHIN if WITHIN in verdicts else True


def judged(cell: Cell, found: Measured) -> Row:
    """Return a cell's row."""
    row: Row = {"cell": cell.label, "MiB": f"{cell.mib:g}"}
    if OURS not in found.times:
        reason = found.failures.get(OURS, "not measured")
        names = ("us", "TB/s", "of copy", "goal", "best peer", "peer us", "us of peer")
        return {**row, **dict.fromkeys(names, "-"), "reached": False, "note": reason}
    ours = found.times[OURS]
    peers = {name: t for name, t in found.times.items() if name != OURS}
    best = min(peers, key=lambda name: peers[name].seconds) if peers else None
    beside = ratio_of(peers[best], ours) if best else Ratio(1.0, 0.0)
    wanted = _goals(cell, found)
    of_copy = found.of_copy(OURS)
    return {
        **row,
        "us": f"{ours.seconds * 1e6:.2f}",
        "TB/s": f"{found.moved / ours.seconds / 1e12:.3f}",
        "of copy": f"{of_copy.value:.4f} ± {of_copy.error:.4f}",
        "goal": "; ".join(goal.text for goal in wanted) or "-",
        "best peer": best or "-",
        "peer us": f"{peers[best].seconds * 1e6:.2f}" if best else "-",
        "us of peer": f"{1 / beside.value - 1:+.1%} ± {beside.error:.1%}" if best else "-",
        "reached": worst([*(g.verdict for g in wanted), at_least(beside, 1 / (1 + SLOWER))]),
        "note": "; ".join(f"{name}: {why}" for name, why in found.failures.items()),
    }


def _goals(cell: Cell, found: Measured) -> list[Judged]:
    goal = cell.goal
    if goal is None:
        return []
    wanted: list[Judged] = []
    if goal.copy is not None:
        wanted.append(Judged(f">= {goal.copy:g}", at_least(found.of_copy(OURS), goal.copy)))
    if goal.driver is not None and DRIVER in found.copies:
        ratio = found.of_copy(OURS, DRIVER)
        verdict = at_least(ratio, goal.driver)
        text = f"or >= {goal.driver:g} of the driver's ({ratio.value:.3f})"
        either = _better([*(g.verdict for g in wanted), verdict])
        wanted = [Judged("; ".join([*(g.text for g in wanted), text]), either)]
    for name, least in goal.of.items():
        theirs = found.aligned if name == ALIGNED else found.times.get(name)
        if theirs is None:
            wanted.append(Judged(f"{name}: not measured", False))
            continue
        ratio = ratio_of(theirs, found.times[OURS])
        text = f"{name} >= {least:g} ({ratio.value:.3f} ± {ratio.error:.3f})"
        wanted.append(Judged(text, at_least(ratio, least)))
    return wanted


def _better(verdicts: list[Verdict]) -> Verdict:
    if True in verdicts:
        return True
    return WITHIN if WITHIN in verdicts else False
