"""What would decide an undecided case: how many more runs it takes, and the sentence of it."""

from dataclasses import replace

from tracker.evidence import Evidence
from tracker.policy import Policy
from tracker.reasons import ReasonCode
from tracker.stats.compare import runs_to_decide

# How a sentence begins that asks for more runs of head alone.
HEAD_AGAIN = "measure head "


def more_runs(decisive: Evidence, code: ReasonCode, policy: Policy) -> int | None:
    """Return how many more runs of head would decide it, None where they would not.

    `code` says why it is undecided.
    """
    c = decisive.comparison
    if code is ReasonCode.SUSPICIOUS and c.significant:
        if not decisive.standing.left_both:
            return 2  # one more shows which of the runs strayed, two settle it
        if not decisive.standing.strays:
            return None  # the machine may have moved, and more of head do not move base
        return decisive.standing.runs_to_dismiss_strays(policy.confidence)
    if code is ReasonCode.SUSPICIOUS:
        return runs_to_decide(c, policy.confidence)
    if code is ReasonCode.TOO_NOISY:
        return runs_to_decide(replace(c, effect=-policy.resolution), policy.confidence)
    return None


def advise(more: int | None, *, in_turns: bool = False, command: str = "") -> str:
    """Return what to do about a case that `more` runs of head would decide, or None.

    `in_turns`: it was measured in turns already. `command` does what the sentence says.
    """
    told = f" ({command})" if command else ""
    if in_turns:
        return f"measure more pairs{told}, or quieten the machine"
    if more is None:
        return f"measure both commits in turn{told or ' (bandwatch ab)'}, or quieten the machine"
    if more == 1:
        return f"{HEAD_AGAIN}once more in a fresh process{told}"
    return f"{HEAD_AGAIN}{more} more times in fresh processes{told}"
