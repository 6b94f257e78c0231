"""One judged case as a row: base values for machines, marks and reasons for people."""

import re
from dataclasses import dataclass

from tracker.advice import HEAD_AGAIN
from tracker.baseline import all_elsewhere
from tracker.evidence import Evidence
from tracker.model import Result, Status, VerdictKind
from tracker.reasons import BECOMES_BASE, NO_EARLIER, Reason, ReasonCode
from tracker.report.columns import show_some
from tracker.report.document import Column, Footnote, Kind, Row, Tone, Value, footnote
from tracker.units import bandwidth, percent, seconds
from tracker.verdict import Verdict
from tracker.yardsticks import LAUNCH_BOUND, fits_sum, floor_beside, launch_bound, sum_fraction

NO_BASELINE = "no baseline"
_WRONG = {Status.INCORRECT: "incorrect", Status.ERROR: "error"}
# Outcomes in the order of a report, each with its mark.
MARKS = {
    "incorrect": "! incorrect",
    "error": "! error",
    VerdictKind.REGRESSION.value: "▲ slower",
    VerdictKind.IMPROVEMENT.value: "▼ faster",
    VerdictKind.UNDECIDED.value: "? undecided",
    NO_BASELINE: "? no baseline",
    VerdictKind.NO_CHANGE.value: "= no change",
}
OUTCOMES = tuple(MARKS)
_TONES = {
    "incorrect": Tone.WORSE,
    "error": Tone.WORSE,
    VerdictKind.REGRESSION.value: Tone.WORSE,
    VerdictKind.IMPROVEMENT.value: Tone.BETTER,
    VerdictKind.UNDECIDED.value: Tone.WARNING,
}
# What the mark of an unchanged case says already.
_SAID_BY_MARK = frozenset({ReasonCode.WITHIN_NOISE, ReasonCode.SAME_CODE})
# Where only a loss larger than this would have shown, as on a CPU, "no change" alone says too much.
_COARSE = 0.1
# The column of an empty kernel's time, there only where some row's time is small beside it.
EMPTY = "empty"
# The column of the smallest loss that a comparison without a change would have shown.
SHOWS = "would_show"
# What a row is.
_CASE = "case"
_SAID_BY_REASON = "remove the obstacle"
# What a run of another environment says too, which names where it differs.
_SAID_BY_ENVIRONMENT = frozenset({NO_EARLIER, BECOMES_BASE})
_NUMBER = re.compile(r"[-+]?\d[\d.]*")


@dataclass(frozen=True, slots=True)
class Judged:
    """One case: its verdict, its result (None when it vanished), and remarks from the settings."""

    verdict: Verdict
    result: Result | None
    remarks: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """The verdict's kind, or `incorrect`, `error`, `no baseline` where that says more."""
        if self.result is not None and self.result.status in _WRONG:
            return _WRONG[self.result.status]
        if self.verdict.wrong:  # a repeat is
            return "error" if self.verdict.has(ReasonCode.ERROR) else "incorrect"
        if self.verdict.has(ReasonCode.NO_BASELINE):
            return NO_BASELINE
        return self.verdict.kind.value

    @property
    def order(self) -> tuple[int, float, str]:
        """Sort key: what asks for action first, then the larger change."""
        return (
            OUTCOMES.index(self.outcome),
            -abs(self.verdict.effect or 0.0),
            self.verdict.case.label,
        )


COLUMNS = (
    Column("case", "case", Kind.CODE),
    *(
        Column(key, None)
        for key in ("fingerprint", "kernel", "implementation", "dtype", "shape", "alignment")
    ),
    *(Column(key, None) for key in ("cache", "parameters", "version", "status")),
    Column("time_s", None),
    Column("time", "time", Kind.NUMBER, machine=False, drop=2),
    Column("floor_s", None),
    Column(EMPTY, EMPTY, Kind.NUMBER, show_some, machine=False, drop=5),
    Column("launch_bound", None),
    Column("bytes_moved", None),
    Column("bandwidth_bytes_per_s", None),
    Column("rate", "GB/s", Kind.NUMBER, machine=False, drop=3),
    Column("copy_fraction", None),
    Column("of_copy", "of copy", Kind.NUMBER, machine=False, drop=4),
    Column("two_read_fraction", None),
    Column("of_sum", "of sum", Kind.NUMBER, show_some, machine=False, drop=6),
    *(Column(key, None) for key in ("baseline", "baseline_time_s", "bandwidth_change")),
    *(Column(key, None) for key in ("bandwidth_change_low", "bandwidth_change_high")),
    *(Column(key, None) for key in ("metric", "p_value", "detectable_loss", "more_runs")),
    *(Column(key, None) for key in ("since", "waived", "noise", "noise_source", "evidence")),
    *(Column(key, None) for key in ("base_runs", "head_runs", "confidence")),
    Column("change", "change of GB/s", Kind.NUMBER, machine=False, drop=1),
    Column(SHOWS, "would show", Kind.NUMBER, show_some, machine=False, drop=2),
    Column("outcome", None),
    Column("mark", "verdict", Kind.WORD, machine=False),
    *(Column(key, None) for key in ("reasons", "warnings", "remarks")),
)


def to_row(judged: Judged, *, hidden: bool = False) -> Row:
    """Return the row of one judged case."""
    result = judged.result
    place = None
    if result is not None and result.source_file:
        place = (result.source_file, result.source_line or 1)
    return Row(
        values=_identity(judged) | _measured(result) | _compared(judged),
        tone=_TONES.get(judged.outcome, Tone.PLAIN),
        footnotes=_footnotes(judged),
        hidden=hidden,
        place=place,
    )


def _identity(judged: Judged) -> dict[str, Value]:
    case = judged.verdict.case
    return {
        "case": case.label,
        "fingerprint": case.fingerprint,
        "kernel": case.kernel,
        "implementation": case.implementation,
        "dtype": case.dtype,
        "shape": case.shape,
        "alignment": case.alignment,
        "cache": case.cache,
        "parameters": dict(case.parameters),
        "version": case.version,
    }


def _measured(result: Result | None) -> dict[str, Value]:
    if result is None:
        return {"status": None}
    time_s = result.summary.median_s if result.summary else None
    rate, fraction, of_sum = result.bandwidth, result.copy_fraction, sum_fraction(result)
    floor, bound = floor_beside(result), launch_bound(result)
    return {
        "status": result.status.value,
        "time_s": time_s,
        "time": None if time_s is None else seconds(time_s),
        "floor_s": result.peaks.floor_s,
        EMPTY: None if floor is None else seconds(floor, 3),
        "launch_bound": bound,
        "bytes_moved": result.bytes_moved,
        "bandwidth_bytes_per_s": rate,
        "rate": None if rate is None else bandwidth(rate).removesuffix(" GB/s"),
        "copy_fraction": fraction,
        "of_copy": LAUNCH_BOUND if bound else _percent(fraction),
        "two_read_fraction": of_sum,
        "of_sum": _percent(of_sum) if fits_sum(result) and not bound else None,
        "warnings": [{"code": w.code, "message": w.message} for w in result.warnings],
    }


def _percent(fraction: float | None) -> str | None:
    return None if fraction is None else f"{fraction * 100:.1f} %"


def _compared(judged: Judged) -> dict[str, Value]:
    verdict = judged.verdict
    low, high = verdict.interval or (None, None)
    times = [evidence.base for evidence in verdict.evidence if evidence.metric == "time"]
    change = None if verdict.effect is None else percent(verdict.effect, signed=True)
    if change is not None and low is not None and high is not None:
        change += f" ({low * 100:+.2f} to {high * 100:+.2f})"
    base_runs, head_runs = verdict.pooled or (None, None)
    return {
        "baseline": verdict.baseline_rule or None,
        "baseline_time_s": times[0] if times else None,
        "bandwidth_change": verdict.effect,
        "bandwidth_change_low": low,
        "bandwidth_change_high": high,
        "base_runs": base_runs,
        "head_runs": head_runs,
        "confidence": verdict.confidence,
        "change": change,
        SHOWS: _would_show(verdict),
        "metric": verdict.metric,
        "p_value": verdict.p_value,
        "detectable_loss": verdict.detectable,
        "more_runs": verdict.more_runs,
        "since": verdict.since,
        "waived": verdict.waived or None,
        "noise": verdict.noise.sigma if verdict.noise else None,
        "noise_source": verdict.noise.source if verdict.noise else None,
        "evidence": [_evidence(evidence) for evidence in verdict.evidence],
        "outcome": judged.outcome,
        "mark": MARKS[judged.outcome],
        "reasons": [{"code": r.code.value, "message": r.message} for r in verdict.reasons],
        "remarks": judged.remarks,
    }


def _would_show(verdict: Verdict) -> str | None:
    """Return the smallest loss that would have shown, where it says what the verdict is worth."""
    telling = verdict.kind is VerdictKind.NO_CHANGE or verdict.has(ReasonCode.TOO_NOISY)
    return percent(verdict.detectable) if telling and verdict.detectable is not None else None


def _evidence(evidence: Evidence) -> dict[str, Value]:
    low, high = evidence.bandwidth_interval
    return {
        "metric": evidence.metric,
        "base": evidence.base,
        "head": evidence.head,
        "bandwidth_change": evidence.bandwidth_effect,
        "bandwidth_change_low": low,
        "bandwidth_change_high": high,
        "p_value": evidence.comparison.p_value,
    }


def _footnotes(judged: Judged) -> tuple[Footnote, ...]:
    verdict = judged.verdict
    quiet = _SAID_BY_MARK if verdict.kind is VerdictKind.NO_CHANGE else frozenset[ReasonCode]()
    coarse = verdict.detectable is not None and verdict.detectable > _COARSE
    if coarse:
        quiet -= {ReasonCode.WITHIN_NOISE}
    reasons, remarks = _folded(verdict.reasons, judged.remarks)
    notes = [_reason(reason) for reason in reasons if reason.code not in quiet]
    if verdict.what_would_decide and not verdict.what_would_decide.startswith(_SAID_BY_REASON):
        notes.append(_advice(verdict))
    if judged.result is not None:
        # Warnings come with numbers of their own in nearly every row: one of each kind will do.
        notes += [Footnote(w.message, f"warning {w.code}") for w in judged.result.warnings]
    return (*notes, *map(footnote, remarks))


def _folded(
    reasons: tuple[Reason, ...], remarks: tuple[str, ...]
) -> tuple[tuple[Reason, ...], tuple[str, ...]]:
    """Return reasons and remarks without those that say once more that the environment changed."""
    if not any(reason.code is ReasonCode.OTHER_ENVIRONMENT for reason in reasons):
        return reasons, remarks
    return (
        tuple(reason for reason in reasons if reason.message not in _SAID_BY_ENVIRONMENT),
        tuple(remark for remark in remarks if not all_elsewhere(remark)),
    )


def _advice(verdict: Verdict) -> Footnote:
    """Return what would decide; who asks for fewer runs of head shares what asks for the most."""
    text = verdict.what_would_decide
    if verdict.more_runs is None or not text.startswith(HEAD_AGAIN):
        return Footnote(text, text, _CASE)
    # Another command repeats what is suspicious.
    kind = "suspicious" if verdict.has(ReasonCode.SUSPICIOUS) else "other"
    return Footnote(text, f"advice {kind}", _CASE, verdict.more_runs)


def _reason(reason: Reason) -> Footnote:
    """Return the reason as a footnote, shared by those that differ in their numbers alone."""
    if reason.code is ReasonCode.OTHER_ENVIRONMENT:
        return Footnote(reason.message, reason.message, _CASE)
    if reason.code not in {ReasonCode.TOO_NOISY, ReasonCode.WITHIN_NOISE}:
        return footnote(reason.message)
    # One code may say different things: that a side did not settle, or what could have shown.
    kind = _NUMBER.sub("#", reason.message.partition(";")[0])
    return Footnote(reason.message, f"reason {reason.code} {kind}")
