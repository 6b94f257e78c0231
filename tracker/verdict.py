"""Whether head is slower than base: the verdict, what it rests on, and the exit code it leads to.

A verdict needs both: an effect worth telling and evidence against chance. Effects and intervals of
a verdict are relative changes of bandwidth (negative = regression).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracker.advice import advise, more_runs
from tracker.errors import ExitCode
from tracker.evidence import Evidence, copy_standing, weigh
from tracker.model import CHANGES, Case, Status, VerdictKind
from tracker.moved import clock_moved, machine_moved
from tracker.policy import DEFAULT_POLICY, Policy
from tracker.reasons import BECOMES_BASE, NO_EARLIER, Reason, ReasonCode
from tracker.sides import Side, age_days, environment_difference, flaws, other_device, remarks
from tracker.stats.compare import Comparison
from tracker.stats.noise import Noise
from tracker.units import percent

__all__ = ["Policy", "Reason", "ReasonCode", "Side", "Verdict", "exit_code", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was concluded of one case, and on what grounds.

    `effect` and `interval` are relative changes of bandwidth, None where nothing could be compared;
    the interval holds the truth with `confidence`.
    `metric` is what decided: "time", or "copy fraction" between two boards. `detectable` is the
    smallest loss that this comparison would have shown. `more_runs` of head would decide it.
    `since` is the first commit of a change that began before head; `waived` says who lets the case
    pass, whatever the verdict. `worth_repeating`: not suspicious enough to tell, and one more fresh
    process would make it surer. `wrong`: head computed something wrong or its test failed, which is
    no matter of speed. `in_turns`: both sides' processes took turns.
    """

    case: Case
    kind: VerdictKind
    reasons: tuple[Reason, ...]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    metric: str | None = None
    evidence: tuple[Evidence, ...] = ()
    noise: Noise | None = None
    detectable: float | None = None
    more_runs: int | None = None
    baseline_rule: str = ""
    what_would_decide: str = ""
    worth_repeating: bool = False
    since: str | None = None
    waived: str = ""
    wrong: bool = False
    confidence: float | None = None
    in_turns: bool = False

    @property
    def decisive(self) -> Evidence | None:
        """The evidence of the metric that decided."""
        return next((e for e in self.evidence if e.metric == self.metric), None)

    @property
    def pooled(self) -> tuple[int, int] | None:
        """How many runs of base and of head were compared; None where none or by the monitor."""
        if self.decisive is None or self.since is not None:
            return None
        comparison = self.decisive.comparison
        return comparison.base_runs, comparison.head_runs

    def has(self, code: ReasonCode) -> bool:
        """Return whether the code is among the reasons."""
        return any(reason.code is code for reason in self.reasons)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that this verdict alone leads to; what was waived fails nothing.

        A wrong result fails as a regression does: as undecided it would look like noise.
        """
        if self.wrong:
            return ExitCode.REGRESSION
        if self.waived:
            return ExitCode.OK
        if self.kind is VerdictKind.REGRESSION:
            return ExitCode.REGRESSION
        if self.kind is not VerdictKind.UNDECIDED:
            return ExitCode.OK
        return _worst(reason.exit_code for reason in self.reasons)


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """Return the exit code of a suite: regression or wrong before unfit before undecided before ok.

    No verdict at all is undecided: nothing was measured. A case without a baseline is no error.
    """
    codes = [verdict.exit_code for verdict in verdicts]
    return _worst(codes) if codes else ExitCode.UNDECIDED


def _worst(codes: Iterable[ExitCode]) -> ExitCode:
    order = (ExitCode.OK, ExitCode.UNDECIDED, ExitCode.UNFIT, ExitCode.REGRESSION)
    return max(codes, key=order.index, default=ExitCode.OK)


def judge(
    base: Side | None, head: Side | None, policy: Policy = DEFAULT_POLICY, quietness: float = 1.0
) -> Verdict:
    """Return the verdict on head against base; both of the same case, else ValueError.

    `base` None means that no baseline was found, `head` None that the case vanished from a run that
    should have had it. `quietness` scales the noise that is expected before any was seen.
    """
    if head is None:
        return _vanished(base)
    if base is None:
        flawed = flaws(head, "head", policy.min_measurements)
        found = (*flawed, _no_baseline(head, fit=not flawed))
        verdict = Verdict(head.result.case, VerdictKind.UNDECIDED, found)
    else:
        verdict = _compared(base, head, policy, quietness)
    wrong = any(run.status in _WRONG for run in head.runs)
    return replace(verdict, wrong=True) if wrong else verdict


_WRONG = frozenset({Status.INCORRECT, Status.ERROR})


def _compared(base: Side, head: Side, policy: Policy, quietness: float) -> Verdict:
    b, h = base.result.case, head.result.case
    if b != h and b.fingerprint != h.fingerprint:
        raise ValueError(
            f"cannot compare {base.result.case.label} with {head.result.case.label}: not one case"
        )
    obstacles = _obstacles(base, head, policy)
    if (zero := _drop_to_zero(base, head)) is not None:
        return zero
    evidence = weigh(base, head, _confidence(base, head, policy), quietness)
    if not evidence:
        return Verdict(head.result.case, VerdictKind.UNDECIDED, obstacles, baseline_rule=base.rule)
    return _conclude(base, head, policy, obstacles, evidence)


def _no_baseline(head: Side, *, fit: bool) -> Reason:
    text = BECOMES_BASE if fit else NO_EARLIER
    if head.checkout.dirty:
        text = f"{NO_EARLIER}; uncommitted changes make no baseline: commit, then measure again"
    return Reason(ReasonCode.NO_BASELINE, text)


def _vanished(base: Side | None) -> Verdict:
    if base is None:
        raise ValueError("cannot judge: neither base nor head is given")
    message = "the baseline run has this case, the run that was judged does not"
    return Verdict(
        base.result.case,
        VerdictKind.UNDECIDED,
        (Reason(ReasonCode.VANISHED, message),),
        baseline_rule=base.rule,
        what_would_decide="run the whole suite; where the case was removed on purpose, say so: "
        "bandwatch triage waive PATTERN --until DATE --note TEXT",
    )


def _drop_to_zero(base: Side, head: Side) -> Verdict | None:
    if head.result.bandwidth != 0 or not base.result.bandwidth:
        return None
    why = Reason(ReasonCode.DROP_TO_ZERO, "bandwidth fell to zero: head moved no bytes")
    return Verdict(
        head.result.case,
        VerdictKind.REGRESSION,
        (why,),
        -1.0,
        (-1.0, -1.0),
        baseline_rule=base.rule,
    )


def _obstacles(base: Side, head: Side, policy: Policy) -> tuple[Reason, ...]:
    """Return what keeps the two from being judged, whatever the numbers say."""
    found = [
        *flaws(head, "head", policy.min_measurements),
        *flaws(base, "base", policy.min_measurements),
    ]
    if fields := environment_difference(base.environment, head.environment):
        message = f"environments differ in {'; '.join(fields)}: measure the base again in this one"
        found.append(Reason(ReasonCode.OTHER_ENVIRONMENT, message))
    noisy = [n for n, side in (("base", base), ("head", head)) if _noisy_on_cpu(side)]
    if noisy:
        message = f"{' and '.join(noisy)} did not settle, on a CPU: measure again"
        found.append(Reason(ReasonCode.TOO_NOISY, message))
    return tuple(found)


def _noisy_on_cpu(side: Side) -> bool:
    """Whether a CPU's time is no evidence: beside other programs it can double within a run."""
    return side.environment.backend == "cpu" and side.result.status is Status.NOISY


def _confidence(base: Side, head: Side, policy: Policy) -> float:
    factor = policy.same_code_factor if _same_code(base, head) else 1.0
    return 1 - (1 - policy.confidence) / factor


def _same_code(base: Side, head: Side) -> bool:
    code = head.result.code_fingerprint
    return code is not None and code == base.result.code_fingerprint


def _conclude(
    base: Side,
    head: Side,
    policy: Policy,
    obstacles: tuple[Reason, ...],
    evidence: tuple[Evidence, ...],
) -> Verdict:
    boards = other_device(base, head)
    decisive = next(
        (e for e in evidence if e.metric == ("copy fraction" if boards else "time")), None
    )
    if boards:
        obstacles, note = _other_board(obstacles, found=decisive is not None)
    else:
        note = ()
    decisive = decisive or evidence[0]
    kind, why = _decide(decisive, evidence, policy)
    if kind in CHANGES and (moved := machine_moved(decisive, copy_standing(base, head))):
        kind, why = VerdictKind.UNDECIDED, moved
    odd = why.code is ReasonCode.TOO_NOISY and decisive.comparison.significant
    odd = odd or why.code is ReasonCode.ODD_BASELINE
    if odd and decisive.standing.level is not None:
        decisive = replace(
            decisive, standing=replace(decisive.standing, comparison=decisive.standing.level)
        )
    if kind is VerdictKind.NO_CHANGE:
        obstacles += _stale(base, head, policy)
    if obstacles:
        kind = VerdictKind.UNDECIDED
    notes = (*note, *_code_note(base, head, kind), *remarks(base, head))
    more = more_runs(decisive, why.code, policy)
    return Verdict(
        case=head.result.case,
        kind=kind,
        reasons=(*obstacles, why, *notes),
        effect=decisive.bandwidth_effect,
        interval=decisive.bandwidth_interval,
        p_value=decisive.standing.p_value,
        metric=decisive.metric,
        evidence=evidence,
        noise=decisive.comparison.noise,
        detectable=decisive.comparison.detectable,
        more_runs=more if kind is VerdictKind.UNDECIDED else None,
        baseline_rule=base.rule,
        what_would_decide=_what_would_decide(kind, obstacles, more, in_turns=base.in_turns),
        confidence=_confidence(base, head, policy),
        in_turns=base.in_turns,
    )


def _decide(
    decisive: Evidence, evidence: tuple[Evidence, ...], policy: Policy
) -> tuple[VerdictKind, Reason]:
    c, effect = decisive.comparison, decisive.bandwidth_effect
    change = f"{percent(effect, signed=True)} bandwidth by {decisive.metric}"
    relevant = abs(effect) >= policy.minimal_effect
    if c.significant and relevant:
        return _changed(decisive, evidence, policy, change)
    if c.significant:
        message = f"{change} is real but below the {percent(policy.minimal_effect)} that matters"
        return VerdictKind.NO_CHANGE, Reason(ReasonCode.SMALL_EFFECT, message)
    if c.p_value < policy.suspicion and relevant:
        message = (
            f"{change}, p = {c.p_value:.1g}: too large to dismiss, too weak to call; {_noise(c)}"
        )
        return VerdictKind.UNDECIDED, Reason(ReasonCode.SUSPICIOUS, message)
    if c.detectable > policy.resolution:
        message = f"{_only_shown(c, policy)}; {_noise(c)}"
        return VerdictKind.UNDECIDED, Reason(ReasonCode.TOO_NOISY, message)
    message = (
        f"{change} is within noise; a loss of {percent(c.detectable)} would have shown; {_noise(c)}"
    )
    return VerdictKind.NO_CHANGE, Reason(ReasonCode.WITHIN_NOISE, message)


def _changed(
    decisive: Evidence, evidence: tuple[Evidence, ...], policy: Policy, change: str
) -> tuple[VerdictKind, Reason]:
    """Return what a significant and relevant change means."""
    c, standing = decisive.comparison, decisive.standing
    if (moved := clock_moved(decisive, evidence)) is not None:
        return VerdictKind.UNDECIDED, moved
    level = standing.level
    if level is not None and standing.lone_base and not standing.left_both:
        return _lone_base(change, level, standing.level_runs, policy)
    if standing.stray_chance > 1 - policy.confidence:
        message = (
            f"{change}, p = {c.p_value:.1g}, but {standing.strays} of {standing.runs} earlier runs "
            "strayed as far and came back"
        )
        return VerdictKind.UNDECIDED, Reason(ReasonCode.SUSPICIOUS, message)
    kind = VerdictKind.REGRESSION if decisive.bandwidth_effect < 0 else VerdictKind.IMPROVEMENT
    return kind, Reason(ReasonCode.SIGNIFICANT, f"{change}, p = {c.p_value:.1g}, {_noise(c)}")


def _lone_base(
    change: str, level: Comparison, runs: int, policy: Policy
) -> tuple[VerdictKind, Reason]:
    """Return what a change against a single run is that itself left the level before it."""
    if not level.p_value < policy.suspicion and level.detectable > policy.resolution:
        message = (
            f"{_only_shown(level, policy)}, against the {runs} runs before the baseline's one, "
            f"which stands out; {_noise(level)}"
        )
        return VerdictKind.UNDECIDED, Reason(ReasonCode.TOO_NOISY, message)
    if not level.p_value < policy.suspicion:
        message = (
            f"{change}, but it is the baseline's one run that stands out: head is where the "
            f"{runs} runs before it are"
        )
        return VerdictKind.NO_CHANGE, Reason(ReasonCode.ODD_BASELINE, message)
    message = (
        f"{change}, but the baseline's one run stands out from the {runs} runs before it, and "
        f"against those it is {percent(1 / (1 + level.effect) - 1, signed=True)}, "
        f"p = {level.p_value:.1g}"
    )
    return VerdictKind.UNDECIDED, Reason(ReasonCode.SUSPICIOUS, message)


def _only_shown(comparison: Comparison, policy: Policy) -> str:
    """Return which loss would have shown where one of the policy's resolution would not."""
    return (
        f"could only have shown a loss of {percent(comparison.detectable)}, not one of "
        f"{percent(policy.resolution)}"
    )


def _noise(comparison: Comparison) -> str:
    return f"noise between runs {percent(comparison.noise.sigma)} ({comparison.noise.source})"


def _other_board(
    obstacles: tuple[Reason, ...], *, found: bool
) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """Return obstacles and notes of a comparison across two boards of one model."""
    if found:
        message = (
            "another board of the same model: judged by the fraction of its own copy bandwidth"
        )
        return obstacles, (Reason(ReasonCode.OTHER_DEVICE, message),)
    message = "another board of the same model, and no copy bandwidth on both sides to judge by"
    return (*obstacles, Reason(ReasonCode.NO_COPY, message)), ()


def _stale(base: Side, head: Side, policy: Policy) -> tuple[Reason, ...]:
    age, limit = age_days(base, head), policy.stale_after_days
    if age is None or limit is None or age <= limit:
        return ()
    message = (
        f"the baseline is {age:.0f} days older than head, at most {limit:.0f} are trusted: "
        "measure the base again"
    )
    return (Reason(ReasonCode.STALE_BASELINE, message),)


def _code_note(base: Side, head: Side, kind: VerdictKind) -> tuple[Reason, ...]:
    if not _same_code(base, head):
        return ()
    message = "the kernel's machine code is the same on both sides"
    if kind in CHANGES:
        message += ": look for the cause in the environment or in how it is launched"
    return (Reason(ReasonCode.SAME_CODE, message),)


def _what_would_decide(
    kind: VerdictKind, obstacles: tuple[Reason, ...], more: int | None, *, in_turns: bool
) -> str:
    if kind is not VerdictKind.UNDECIDED:
        return ""
    if obstacles:
        return f"remove the obstacle: {obstacles[0].message}"
    return advise(more, in_turns=in_turns)
