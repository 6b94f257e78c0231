"""A whole suite judged at once: what stands when all its cases are looked at together.

A suite of hundreds of cases shows something improbable in every run. A change counts only if it
holds among all cases; one that would hold alone is undecided and is to be measured again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracker.advice import advise
from tracker.errors import ExitCode
from tracker.model import CHANGES, Case, VerdictKind
from tracker.reasons import Reason, ReasonCode
from tracker.stats.against import Standing
from tracker.stats.compare import runs_to_decide
from tracker.stats.fdr import threshold
from tracker.stats.tails import Tails
from tracker.verdict import Verdict, exit_code

# The chance that a run of an unchanged suite calls anything.
SUITE_RATE = 0.01


@dataclass(frozen=True, slots=True)
class Suspect:
    """A case worth measuring again, and how many more runs of head would decide it, if known."""

    case: Case
    more_runs: int | None
    p_value: float


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """Verdicts of a suite in the order given, the bar for its p-values, and the suspects.

    `reasons` speak of the suite as a whole.
    """

    verdicts: tuple[Verdict, ...]
    p_bar: float
    suspects: tuple[Suspect, ...]
    reasons: tuple[Reason, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the suite; nothing measured is undecided."""
        return exit_code(self.verdicts)


def settle(verdicts: Sequence[Verdict], rate: float = SUITE_RATE) -> SuiteVerdict:
    """Return a suite's verdicts with false discovery controlled over all of them.

    Regressions and improvements whose p-value does not stand among the suite's become undecided.
    A change is at least as likely as it is that earlier runs, of whatever case, strayed as far.
    """
    verdicts = _with_strays(verdicts)
    tested = [_tested(v) for v in verdicts if v.p_value is not None]
    bar = threshold(tested, rate)
    settled = tuple(_settle(verdict, bar, len(tested)) for verdict in verdicts)
    found = [
        Suspect(v.case, v.more_runs, v.p_value)
        for v in settled
        if v.has(ReasonCode.SUSPICIOUS) and v.p_value is not None
    ]
    suspects = tuple(sorted(found, key=lambda suspect: suspect.p_value))
    return SuiteVerdict(settled, bar, suspects, () if verdicts else (_nothing(),))


def _tested(verdict: Verdict) -> float:
    """Return what a verdict says among the suite's: only a change may lower the bar for others."""
    return verdict.p_value or 0.0 if verdict.kind in CHANGES else 1.0


def _with_strays(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, changes no less probable than the strays among all earlier runs."""
    standings = [_standing(verdict) for verdict in verdicts]
    if not any(verdict.kind in CHANGES for verdict in verdicts):
        return list(verdicts)
    tails = Tails([standing for standing in standings if standing is not None])
    found = []
    for verdict, standing in zip(verdicts, standings, strict=True):
        if standing is None or verdict.kind not in CHANGES or verdict.p_value is None:
            found.append(verdict)
            continue
        chance = tails.least_chance(standing)
        found.append(replace(verdict, p_value=max(verdict.p_value, chance)))
    return found


def _standing(verdict: Verdict) -> Standing | None:
    """Return how what decided stands to its level; None where the monitor did."""
    evidence = verdict.decisive
    return evidence.standing if evidence is not None and verdict.since is None else None


def _nothing() -> Reason:
    return Reason(ReasonCode.EMPTY_RUN, "the run has no case to judge: nothing was measured")


def _settle(verdict: Verdict, bar: float, tested: int) -> Verdict:
    if verdict.kind not in CHANGES or verdict.p_value is None or verdict.p_value <= bar:
        return verdict
    message = (
        f"p = {verdict.p_value:.1g} would do for one case, among {tested} it takes {bar:.1g}: "
        "measure again"
    )
    more = _more(verdict, bar)
    return replace(
        verdict,
        kind=VerdictKind.UNDECIDED,
        reasons=(Reason(ReasonCode.SUSPICIOUS, message), *verdict.reasons),
        more_runs=more,
        what_would_decide=advise(more, in_turns=verdict.in_turns),
    )


def _more(verdict: Verdict, bar: float) -> int | None:
    decisive = verdict.decisive
    return runs_to_decide(decisive.comparison, 1 - bar) if decisive else None
