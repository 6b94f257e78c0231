"""Whether a CPU was busy with other work while a run was measured: the run's own samples tell.

Beside other programs some samples jump between two speeds and do not settle, and others are slow
from their first measurement to their last, as if the code were. The first betray the second: where
many cases of a run did not settle, no case of it can tell slow code from a slow machine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracker.model import CHANGES, Result, Status, VerdictKind
from tracker.reasons import Reason, ReasonCode
from tracker.verdict import Verdict

# On two cores with a load of three none to six of 25 cases did not settle, with five to nine seven
# to fifteen.
_SHARE = 0.1
_FEWEST = 2


def busy(base: Sequence[Result], head: Sequence[Result], backend: str) -> Reason | None:
    """Return why neither side's speed is evidence, None where both were measured in quiet.

    `base` and `head` are all results of a run that were judged, and what they were judged against;
    a GPU is nobody else's while it measures, so only a "cpu" backend is ever busy.
    """
    if backend != "cpu":
        return None
    found = [
        f"{restless} of {len(side)} cases of {name}"
        for name, side in (("head", head), ("base", base))
        if (restless := _restless(side)) >= max(_FEWEST, _SHARE * len(side))
    ]
    if not found:
        return None
    message = (
        f"{' and '.join(found)} did not settle: the CPU was busy with other work, which slows "
        "whole samples too; measure again in quiet"
    )
    return Reason(ReasonCode.BUSY_MACHINE, message)


def hold_back(verdict: Verdict, why: Reason) -> Verdict:
    """Return a change as undecided for that reason, any other verdict as it is."""
    if verdict.kind not in CHANGES:
        return verdict
    return replace(
        verdict,
        kind=VerdictKind.UNDECIDED,
        reasons=(why, *verdict.reasons),
        what_would_decide=f"remove the obstacle: {why.message}",
    )


def _restless(results: Iterable[Result]) -> int:
    return sum(result.status is Status.NOISY for result in results)
