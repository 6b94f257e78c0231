"""The monitor at work: each new run of a series, seen from the level that its commits have.

The gate holds a run against its baseline; the monitor sees what only several runs show, and decides
with the repeats of a run whether a suspicious one is real. Both speak in one verdict.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import exp

import numpy as np

from tracker.advice import advise
from tracker.baseline import shared
from tracker.evidence import goes_along
from tracker.model import CHANGES, Result, Status, VerdictKind
from tracker.past import Seen
from tracker.reasons import Reason, ReasonCode
from tracker.stats.feed import feed
from tracker.stats.look import look
from tracker.stats.monitor import CONFIDENCE, MonitorVerdict
from tracker.stats.remeasure import Remeasure
from tracker.stats.shift import GAP, SHORTEST_LEVEL
from tracker.stats.summary import log_median
from tracker.units import percent
from tracker.verdict import Policy, Verdict

SHORTEST = SHORTEST_LEVEL + GAP
# What an undecided verdict may say for the monitor to say more; all else is an obstacle.
_OPEN = frozenset({ReasonCode.SUSPICIOUS, ReasonCode.TOO_NOISY})


@dataclass(frozen=True, slots=True)
class Line:
    """One series up to the run that is judged: a value a commit, oldest first, higher is better.

    The last is the first run of the judged commit, `repeats` are its further ones. `metric` says
    what the values are; `cycles` are the costs that tell a slow clock, None where unknown; `before`
    are the runs of each earlier commit.
    """

    shas: tuple[str, ...]
    values: tuple[float, ...]
    repeats: tuple[float, ...]
    metric: str
    cycles: tuple[float | None, ...]
    before: tuple[Seen, ...]


def line_of_case(
    past: Sequence[Seen], result: Result, device: str, sha: str, own: Sequence[Seen]
) -> Line | None:
    """Return the series of a case, None where it is too short or the result is not fit.

    `past` are its earlier runs, the nearest ancestor first, `own` those of the judged commit.
    """
    if not _fit(result):
        return None
    usable = [seen for seen in reversed(past) if seen.usable and seen.info.sha != sha]
    boards = {seen.info.device.uuid for seen in usable} | {device}
    by_copy = len(boards) > 1 and _all_with_copy(result, (*usable, *own))
    if len(boards) > 1 and not by_copy:
        usable = [seen for seen in usable if seen.info.device.uuid == device]
    value: Callable[[Seen], float] = _copy_fraction if by_copy else _speed
    groups = [list(g) for _, g in groupby(usable, key=lambda seen: seen.info.sha)]
    if len(groups) + 1 < SHORTEST:
        return None
    newest = result.copy_fraction if by_copy else 1 / _time_s(result)
    of_head = [*(value(seen) for seen in reversed(own)), float(newest or 0.0)]
    cycles = [seen.glance.cycles for seen in reversed(own)] + [result.median_cycles]
    return Line(
        shas=(*(str(group[0].info.sha) for group in groups), sha),
        values=(*(_middle([value(seen) for seen in group]) for group in groups), of_head[0]),
        repeats=tuple(of_head[1:]),
        metric="copy fraction" if by_copy else "time",
        cycles=(*(group[0].glance.cycles for group in groups), cycles[0]),
        before=tuple(group[0] for group in groups),
    )


def _all_with_copy(result: Result, runs: Iterable[Seen]) -> bool:
    known = all(seen.glance.copy_cost is not None for seen in runs)
    return known and result.copy_fraction is not None


def _middle(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else float(np.median(values))


def _fit(result: Result) -> bool:
    good = result.status in {Status.OK, Status.NOISY} and bool(result.measurements_s)
    return good and not shared(result) and min(result.measurements_s) > 0


def _time_s(result: Result) -> float:
    return exp(log_median(result.measurements_s).value)


def _speed(seen: Seen) -> float:
    return 1 / seen.glance.time_s


def _copy_fraction(seen: Seen) -> float:
    return 1 / (seen.glance.copy_cost or np.nan)


def watch(
    lines: Mapping[int, Line], policies: Mapping[int, Policy]
) -> Iterator[tuple[int, MonitorVerdict]]:
    """Yield what the monitor says of the newest run of each line, where it may say anything.

    Most series are quiet: all of one length are looked at together first.
    """
    by_length = sorted(lines, key=lambda number: len(lines[number].values))
    for _, group in groupby(by_length, key=lambda number: len(lines[number].values)):
        numbers = list(group)
        rows = np.array([lines[number].values for number in numbers])
        seen = look(rows)
        worth = np.flatnonzero(seen.worth)
        effects = [policies[numbers[place]].minimal_effect for place in worth]
        # Only a series that changed is judged from its start.
        quiet = np.where(seen.unsettled[worth], 0, max(0, rows.shape[1] - 2 * GAP)).tolist()
        for place, monitor in zip(worth, feed(rows[worth, :-1], effects, quiet), strict=True):
            line = lines[numbers[place]]
            yield numbers[place], monitor.update(line.values[-1], _told(line.repeats))


def _told(repeats: Sequence[float]) -> Remeasure | None:
    """Return what gives out the repeats that were measured; none, where none were."""
    if not repeats:
        return None
    left = iter(repeats)
    return lambda count: [value for value, _ in zip(left, range(count), strict=False)]


def combine(
    verdict: Verdict, found: MonitorVerdict, line: Line, code_before: str | None, result: Result
) -> Verdict:
    """Return the gate's verdict with what the monitor adds.

    `code_before` is the fingerprint of the code on the level before.
    """
    first = verdict.reasons[0].code if verdict.reasons else None
    if verdict.kind in CHANGES or (verdict.kind is VerdictKind.UNDECIDED and first not in _OPEN):
        return verdict
    if found.kind in CHANGES and found.effect is not None:
        return _called(verdict, found, line, code_before, result)
    codes = {reason.code for reason in found.reasons}
    if ReasonCode.DISMISSED in codes and first is not ReasonCode.TOO_NOISY:
        kind = VerdictKind.NO_CHANGE
        rest = tuple(r for r in verdict.reasons if r.code not in _OPEN)
        return replace(
            verdict,
            kind=kind,
            reasons=(*found.reasons, *rest),
            more_runs=None,
            what_would_decide="",
        )
    if ReasonCode.DRIFT in codes:
        return replace(verdict, reasons=(*verdict.reasons, *found.reasons))
    if found.kind is VerdictKind.UNDECIDED and found.repeats:
        return replace(
            verdict,
            kind=VerdictKind.UNDECIDED,
            reasons=(*found.reasons, *verdict.reasons),
            more_runs=1,
            what_would_decide=advise(1),
        )
    return replace(verdict, worth_repeating=found.worth_repeating)


def _called(
    verdict: Verdict,
    found: MonitorVerdict,
    line: Line,
    code_before: str | None,
    result: Result,
) -> Verdict:
    """Return the verdict of a change that the series shows."""
    at = found.change_at if found.change_at is not None else len(line.values) - 1
    effect = found.effect or 0.0
    since = f"since {line.shas[at][:12]}, against the level of the commits before"
    message = f"{percent(effect, signed=True)} bandwidth by {line.metric} {since}"
    reasons = [
        replace(reason, message=f"{message}: {reason.message}") if number == 0 else reason
        for number, reason in enumerate(found.reasons)
    ]
    kind = found.kind
    if (clock := _clock(line, at, effect)) is not None:
        kind, reasons = VerdictKind.UNDECIDED, [clock, *reasons]
    elif code_before is not None and code_before == result.code_fingerprint:
        told = "the kernel's machine code is the same on both sides: look for the cause in the "
        reasons.append(Reason(ReasonCode.SAME_CODE, f"{told}environment or in how it is launched"))
    kept = tuple(r for r in verdict.reasons if r.code in _KEPT)
    return replace(
        verdict,
        kind=kind,
        reasons=(*reasons, *kept),
        effect=effect,
        interval=found.interval,
        confidence=CONFIDENCE,
        p_value=found.p_value,
        metric=line.metric,
        since=line.shas[at],
        more_runs=None,
        what_would_decide="" if kind in CHANGES else "measure again at the usual clock",
        baseline_rule=f"the level of the commits before {line.shas[at][:12]} (the monitor)",
    )


_KEPT = frozenset({ReasonCode.OTHER_DEVICE, ReasonCode.NOISY, ReasonCode.ZERO_VARIANCE})


def _clock(line: Line, at: int, effect: float) -> Reason | None:
    """Return the reason when the cycles did not move with the time: the clock did."""
    before = [c for c in line.cycles[:at] if c]
    after = [c for c in line.cycles[at:] if c]
    if line.metric != "time" or not before or not after:
        return None
    by_cycles = float(np.median(before) / np.median(after)) - 1
    if goes_along(effect, by_cycles):
        return None
    word = "slower" if effect < 0 else "faster"
    message = (
        f"time says {percent(effect, signed=True)} since {line.shas[at][:12]}, cycles say "
        f"{percent(by_cycles, signed=True)}: a {word} clock, not {word} code"
    )
    return Reason(ReasonCode.CLOCK_MOVED, message)
