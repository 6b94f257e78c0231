"""The command that measures again what a verdict asks for, as a user types it.

Which one fits depends on who compares: `check` and CI pool all runs of a commit, `compare` has one
of each, and of uncommitted changes only one session's processes belong together.
"""

from dataclasses import dataclass, replace

from tracker.advice import advise
from tracker.model import Checkout
from tracker.reasons import BASE_AGAIN, ReasonCode
from tracker.verdict import Verdict

# `bandwatch ci` takes no more repeats, and `bandwatch ab` no more pairs.
MOST_REPEATS, MOST_PAIRS = 20, 100
# As many pairs as it takes unasked.
USUAL_PAIRS = 12


@dataclass(frozen=True, slots=True)
class Again:
    """The commands by which a run can be measured again: `turns` both sides, `head` it alone.

    Empty where none does; `repeats`: head is measured again by `bandwatch ci` too.
    """

    turns: str = ""
    head: str = ""
    repeats: bool = False

    def tell(self, verdict: Verdict) -> Verdict:
        """Return the verdict, the command beside whatever it asks to measure again."""
        verdict = _base_again(verdict, self.turns)
        more = verdict.more_runs
        if verdict.what_would_decide != advise(more, in_turns=verdict.in_turns):
            return verdict
        if verdict.in_turns:
            text = advise(more, in_turns=True, command=self.turns)
        elif more is not None and (command := self._of_head(verdict, more)):
            text = advise(more, command=command)
        elif self.turns:
            text = advise(None, command=self.turns)
        else:
            return verdict
        return replace(verdict, what_would_decide=text)

    def _of_head(self, verdict: Verdict, more: int) -> str:
        if more > MOST_REPEATS:
            return ""
        # Nothing but what is suspicious is repeated there.
        if self.repeats and verdict.has(ReasonCode.SUSPICIOUS):
            return f"bandwatch ci --repeats {more}"
        return f"{self.head}, {more} times" if self.head and more > 1 else self.head


def _base_again(verdict: Verdict, command: str) -> Verdict:
    if not command:
        return verdict
    told = {r: f"{r.message} ({command})" for r in verdict.reasons if r.code in BASE_AGAIN}
    words = verdict.what_would_decide
    for reason, message in told.items():
        words = words.replace(reason.message, message)
    reasons = tuple(replace(r, message=told.get(r, r.message)) for r in verdict.reasons)
    return replace(verdict, reasons=reasons, what_would_decide=words)


def of_judged(base: Checkout | None, head: Checkout) -> Again:
    """Return the commands where all runs of head's commit count, against those of the base's."""
    if head.commit is None:
        return Again()
    if head.dirty or base is None or base.commit is None or base.commit.sha == head.commit.sha:
        return Again(repeats=True)
    return Again("bandwatch ci --ab", "pytest --benchmark", repeats=True)


def of_compared(base: Checkout, head: Checkout) -> Again:
    """Return the commands where one run stands against one: none more of either would count."""
    if base.commit is None or head.commit is None or base.dirty or head.dirty:
        return Again()
    return in_turns(base.commit.sha, head.commit.sha)


def in_turns(base: str, head: str, pairs: int | None = None) -> Again:
    """Return the command that measures two commits in turns, in more than `pairs` where given."""
    if base == head or (pairs is not None and pairs >= MOST_PAIRS):
        return Again()
    most = "" if pairs is None else f" --pairs {min(max(2 * pairs, USUAL_PAIRS), MOST_PAIRS)}"
    return Again(f"bandwatch ab {base[:12]} {head[:12]}{most}")
