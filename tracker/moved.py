"""What else may have moved with a kernel's time: the clock, or the machine as a whole."""

from math import log1p

from tracker.evidence import Evidence, goes_along
from tracker.reasons import Reason, ReasonCode
from tracker.stats.against import Standing
from tracker.stats.shift import SHORTEST_LEVEL
from tracker.units import percent


def clock_moved(decisive: Evidence, evidence: tuple[Evidence, ...]) -> Reason | None:
    """Return the reason when time changed and cycles did not: the clock moved, not the kernel.

    Cycles that explain less than half of the change say so; whether they are significant by
    themselves does not matter, for they are as noisy as the time.
    """
    cycles = next((e for e in evidence if e.metric == "cycles"), None)
    if decisive.metric != "time" or cycles is None:
        return None
    if goes_along(decisive.bandwidth_effect, cycles.bandwidth_effect):
        return None
    word = "slower" if decisive.bandwidth_effect < 0 else "faster"
    message = (
        f"time says {percent(decisive.bandwidth_effect, signed=True)}, cycles say "
        f"{percent(cycles.bandwidth_effect, signed=True)}: a {word} clock, not {word} code"
    )
    return Reason(ReasonCode.CLOCK_MOVED, message)


def machine_moved(decisive: Evidence, copy: Standing | None) -> Reason | None:
    """Return the reason when a copy beside the case moved with its time: the machine did.

    The copy's change counts where it is at least half of the case's, in logarithm, so that a loss
    and its mirror image are treated alike, and once its own past shows that it is no noise. Without
    such a past nobody knows: the case is suspicious.
    """
    if decisive.metric != "time" or copy is None:
        return None
    known = copy.newest is not None
    if known and not copy.left_both:
        return None
    if not goes_along(log1p(decisive.comparison.effect), log1p(copy.comparison.effect)):
        return None
    effect, of_copy = decisive.bandwidth_effect, 1 / (1 + copy.comparison.effect) - 1
    word = "slower" if effect < 0 else "faster"
    message = (
        f"time says {percent(effect, signed=True)}, a copy of the same size in the same run moved "
        f"{percent(of_copy, signed=True)} too: "
    )
    if known:
        message += f"a {word} machine, not {word} code"
        return Reason(ReasonCode.MACHINE_MOVED, message)
    message += (
        f"a {word} machine or {word} code, which fewer than {SHORTEST_LEVEL} earlier runs on this "
        "CPU cannot tell apart"
    )
    return Reason(ReasonCode.SUSPICIOUS, message)
