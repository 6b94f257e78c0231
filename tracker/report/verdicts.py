"""The report of one judged run or comparison: who was measured, the table, the counts.

Rows that ask for action come first. Above `limit` rows people see only those that are decided or
wrong, then the undecided as far as they fit, and how many are hidden.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, fsum, log1p

from tracker.errors import ExitCode
from tracker.model import VerdictKind
from tracker.report.document import Document, Row, Table, Value
from tracker.report.footnotes import Footnotes
from tracker.report.judged import COLUMNS, EMPTY, NO_BASELINE, OUTCOMES, SHOWS, Judged, to_row
from tracker.units import counted, percent, seconds
from tracker.verdict import Verdict
from tracker.yardsticks import LAUNCH_BOUND, LAUNCH_BOUND_MEANS

TEXT_LIMIT = 60
COMMENT_LIMIT = 30
_HIDE_FIRST = (VerdictKind.NO_CHANGE.value, NO_BASELINE, VerdictKind.UNDECIDED.value)


@dataclass(frozen=True, slots=True)
class Heading:
    """What a report says around its table."""

    title: str
    fact_lines: tuple[str, ...] = ()
    facts: dict[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def verdict_document(
    heading: Heading,
    judged: Sequence[Judged],
    code: ExitCode,
    *,
    limit: int | None,
    every_row: str = "bandwatch check --all",
) -> Document:
    """Return the report of `judged`; a `limit` hides rows, which `every_row` names what shows."""
    rows, hidden = _rows(judged, limit)
    counts = Counter(item.outcome for item in judged)
    change, shared = mean_change(judged)
    facts: dict[str, Value] = {
        **heading.facts,
        "verdict": _word(code, counts),
        "cases": len(judged),
        **{outcome.replace(" ", "_"): counts[outcome] for outcome in OUTCOMES},
        "mean_bandwidth_change": change,
        "compared_cases": shared,
    }
    return Document(
        kind="verdicts",
        title=heading.title,
        summary=_summary(counts, len(judged), code),
        facts=facts,
        fact_lines=(
            *heading.fact_lines,
            *_baselines(judged),
            *_compared_line([item.verdict for item in judged]),
            *_mean_line(change, shared),
            *_floor_line(rows),
            *_launch_line(rows),
            *_shows_line(rows),
        ),
        tables=(Table("verdicts", COLUMNS, rows, hidden_note=_hidden_note(hidden, every_row)),),
        notes=(*heading.notes, *_unseen(rows)),
        exit_code=code,
        failed=code is not ExitCode.OK,
    )


def mean_change(judged: Sequence[Judged]) -> tuple[float | None, int]:
    """Return the geometric mean of bandwidth changes and how many cases both sides measured."""
    effects = [j.verdict.effect for j in judged if j.verdict.effect is not None]
    usable = [effect for effect in effects if effect > -1]
    if not usable:
        return None, 0
    return exp(fsum(map(log1p, usable)) / len(usable)) - 1, len(usable)


def _rows(judged: Sequence[Judged], limit: int | None) -> tuple[tuple[Row, ...], Counter[str]]:
    ordered = sorted(judged, key=lambda item: item.order)
    hidden: Counter[str] = Counter()
    counts = Counter(item.outcome for item in judged)
    for outcome in _HIDE_FIRST:
        if limit is not None and len(judged) - hidden.total() > limit:
            hidden[outcome] = counts[outcome]
    rows = tuple(to_row(item, hidden=hidden[item.outcome] > 0) for item in ordered)
    return rows, +hidden


def _unseen(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what hidden rows share and no row that people see says."""
    footnotes = Footnotes(rows)
    for row in rows:
        if not row.hidden:
            footnotes.marks(row)
    return footnotes.unmarked()


def _hidden_note(hidden: Counter[str], every_row: str) -> str | None:
    if not hidden:
        return None
    parts = [f"{hidden[outcome]} {outcome}" for outcome in OUTCOMES if hidden[outcome]]
    return f"hidden: {', '.join(parts)} ({every_row} shows every row)"


def _summary(counts: Counter[str], total: int, code: ExitCode) -> str:
    if not total:
        return "nothing was measured, so nothing was judged"
    parts = [_counted(counts[outcome], outcome) for outcome in OUTCOMES if counts[outcome]]
    return f"{', '.join(parts)} of {counted(total, 'case')}: exit {int(code)}"


def _counted(count: int, outcome: str) -> str:
    plural = outcome in {VerdictKind.REGRESSION.value, VerdictKind.IMPROVEMENT.value}
    return f"{count} {outcome}{'s' if plural and count != 1 else ''}"


def _word(code: ExitCode, counts: Counter[str]) -> str:
    if code is ExitCode.OK and counts.total() and counts[NO_BASELINE] == counts.total():
        return NO_BASELINE
    if code is ExitCode.REGRESSION and not counts[VerdictKind.REGRESSION.value]:
        return "failed"
    words = {
        ExitCode.OK: "ok",
        ExitCode.REGRESSION: VerdictKind.REGRESSION.value,
        ExitCode.UNDECIDED: VerdictKind.UNDECIDED.value if counts.total() else "nothing measured",
        ExitCode.UNFIT: "unfit environment",
    }
    return words.get(code, code.name.lower())


def _baselines(judged: Sequence[Judged]) -> tuple[str, ...]:
    rules = Counter(j.verdict.baseline_rule for j in judged if j.verdict.baseline_rule)
    if len(rules) == 1:
        return (f"baseline: {next(iter(rules))}",)
    return tuple(
        f"baseline of {counted(count, 'case')}: {rule}" for rule, count in rules.most_common()
    )


def _compared_line(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return how many runs were compared, and what the brackets beside a change are."""
    pooled = [verdict.pooled for verdict in verdicts if verdict.pooled is not None]
    if not pooled:
        return ()
    base, head = (_span([pair[side] for pair in pooled]) for side in (0, 1))
    level = " and of the level before it" if any(map(_by_level, verdicts)) else ""
    sure = sorted({verdict.confidence for verdict in verdicts if verdict.confidence is not None})
    told = " to ".join(f"{share * 100:.6g}" for share in dict.fromkeys((sure[0], sure[-1])))
    line = f"compared: {head} of head with {base} of the base{level}"
    line += f"; in brackets the {told} % interval"
    # Two lone runs teach nothing of the noise, and what is only expected of it is known badly.
    lone = (1, 1) in pooled
    return (f"{line}, wide while one run a side cannot show the noise" if lone else line,)


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return counted(high, "run") if low == high else f"{low} to {high} runs"


def _by_level(verdict: Verdict) -> bool:
    """Whether runs of the level before the base stand beside its own."""
    if verdict.decisive is None:
        return False
    standing = verdict.decisive.standing
    return standing.by_level and standing.level is None


def _mean_line(change: float | None, shared: int) -> tuple[str, ...]:
    if change is None or shared < 2:
        return ()
    return (f"mean change of bandwidth over {shared} cases: {percent(change, signed=True)}",)


def _floor_line(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what an empty kernel takes, by cache mode, where a time that is shown is small.

    It says what the column is, and stands for it where the terminal is too narrow for one more.
    """
    floors: dict[str, list[float]] = {}
    for row in rows:
        cache, floor = row.values.get("cache"), row.values.get("floor_s")
        small = not row.hidden and row.values.get(EMPTY) is not None
        if small and isinstance(cache, str) and isinstance(floor, float):
            floors.setdefault(cache, []).append(floor)
    told = [f"{_range(several)} {cache}" for cache, several in sorted(floors.items())]
    return (f"empty kernel, by the same timer: {', '.join(told)}",) if told else ()


def _launch_line(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what the word means where a row that is shown has it."""
    if not any(row.values.get("launch_bound") and not row.hidden for row in rows):
        return ()
    return (f"{LAUNCH_BOUND}: {LAUNCH_BOUND_MEANS}",)


def _shows_line(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what the column is where a row that is shown has it."""
    if not any(row.values.get(SHOWS) and not row.hidden for row in rows):
        return ()
    return ("would show: the smallest loss that the comparison would have called",)


def _range(times_s: Sequence[float]) -> str:
    low, high = seconds(min(times_s), 3), seconds(max(times_s), 3)
    return low if low == high else f"{low} to {high}"
