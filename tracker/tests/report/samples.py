"""Verdicts and documents for the tests of the report, hostile ones too."""

from dataclasses import replace

from tracker.errors import ExitCode
from tracker.model import (
    Case,
    Correctness,
    Peaks,
    Result,
    Status,
    Summary,
    VerdictKind,
    Warn,
)
from tracker.reasons import Reason, ReasonCode
from tracker.report.document import Document
from tracker.report.judged import Judged
from tracker.report.verdicts import Heading, verdict_document
from tracker.verdict import Verdict

# Each would do harm in some format if it got through.
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "a\nb\r\n::error::forged",
    "::set-output name=x::1",
    "##[add-mask]x",
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "| --- | `tick` ``two`` \\| pipe",
    "[link](http://evil.example) ![i](http://evil.example/x.png) https://evil.example www.evil.example",
    "**bold** _it_ ~~s~~ # h @someone #12 &lt;b&gt;",
    "=HYPERLINK(1)",
    "@SUM(1)",
    "+1+1",
    "-1+1",
    "\u202egnp.exe\u2066\u200b",
    "</code></td></table>",
    "[bold red]rich[/]",
)

COPY = Peaks(copy_bytes_per_s=200e9)


def make_case(name: str = "relu", implementation: str = "torch", size: int = 1 << 24) -> Case:
    return Case(name, implementation, "float32", (size,))


def make_result(
    case: Case,
    time_s: float = 1e-3,
    *,
    status: Status = Status.OK,
    warnings: tuple[Warn, ...] = (),
    source_file: str | None = "kernels/relu/cuda.cu",
    arrays: int = 2,
    peaks: Peaks = COPY,
) -> Result:
    measured = status is Status.OK
    return Result(
        case=case,
        status=status,
        measurements_s=(time_s,) * 8 if measured else (),
        summary=Summary(8, time_s, time_s, time_s, time_s, time_s, time_s, 0.0)
        if measured
        else None,
        bytes_moved=4 * arrays * case.shape[0],
        correctness=Correctness(checked=True, passed=measured),
        peaks=peaks,
        source_file=source_file,
        source_line=7,
        warnings=warnings,
    )


def make_judged(
    kind: VerdictKind,
    name: str = "relu",
    *,
    effect: float | None = None,
    reasons: tuple[Reason, ...] = (),
    status: Status = Status.OK,
    rule: str = "newest clean run of an ancestor",
    warnings: tuple[Warn, ...] = (),
    remarks: tuple[str, ...] = (),
) -> Judged:
    case = make_case(name)
    verdict = Verdict(
        case=case,
        kind=kind,
        reasons=reasons,
        effect=effect,
        interval=None if effect is None else (effect - 0.01, effect + 0.01),
        p_value=None if effect is None else 1e-5,
        metric=None if effect is None else "time",
        detectable=0.02,
        baseline_rule=rule,
    )
    return Judged(verdict, make_result(case, status=status, warnings=warnings), remarks)


def one_of_each() -> list[Judged]:
    no_baseline = Reason(ReasonCode.NO_BASELINE, "no earlier comparable result")
    return [
        make_judged(
            VerdictKind.NO_CHANGE,
            "same",
            effect=0.001,
            reasons=(Reason(ReasonCode.WITHIN_NOISE, "within noise"),),
        ),
        make_judged(VerdictKind.UNDECIDED, "new", reasons=(no_baseline,), rule=""),
        make_judged(
            VerdictKind.UNDECIDED,
            "odd",
            effect=-0.02,
            reasons=(Reason(ReasonCode.SUSPICIOUS, "too weak to call"),),
        ),
        make_judged(VerdictKind.IMPROVEMENT, "better", effect=0.10),
        make_judged(
            VerdictKind.REGRESSION,
            "worse",
            effect=-0.05,
            reasons=(Reason(ReasonCode.SIGNIFICANT, "-5.00 % bandwidth by time"),),
        ),
        make_judged(VerdictKind.REGRESSION, "worst", effect=-0.50),
        make_judged(
            VerdictKind.UNDECIDED,
            "wrong",
            status=Status.INCORRECT,
            reasons=(Reason(ReasonCode.INCORRECT, "head failed its correctness check"),),
        ),
    ]


def make_document(
    judged: list[Judged] | None = None,
    *,
    limit: int | None = None,
    title: str = "Verdicts",
    lines: tuple[str, ...] = ("run r-1 on NVIDIA H200",),
    notes: tuple[str, ...] = (),
    code: ExitCode = ExitCode.REGRESSION,
) -> Document:
    rows = one_of_each() if judged is None else judged
    heading = Heading(title, lines, {"run": "r-1", "branch": "main"}, notes)
    return verdict_document(heading, rows, code, limit=limit)


def hostile_document(text: str) -> Document:
    """Put `text` everywhere that a record or git may bring it."""
    reason = Reason(ReasonCode.SIGNIFICANT, text)
    judged = make_judged(
        VerdictKind.REGRESSION,
        text,
        effect=-0.5,
        reasons=(reason,),
        rule=text,
        warnings=(Warn("code", text),),
        remarks=(text,),
    )
    # A cache mode is told in a line of its own where a time is small.
    case = replace(judged.verdict.case, cache=text)
    small = make_result(
        case,
        5e-6,
        warnings=(Warn("code", text),),
        peaks=replace(COPY, copy_source=text, floor_s=2e-6),
    )
    judged = replace(judged, verdict=replace(judged.verdict, case=case), result=small)
    return make_document([judged], title=text, lines=(text,), notes=(text,))
