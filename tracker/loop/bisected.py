"""The report of a bisection: the commit, how likely, what it changed, and every commit's part."""

from math import exp

from tracker.errors import ExitCode
from tracker.loop.bisect import Answer, Question
from tracker.loop.repository import Repository
from tracker.report.columns import show_change, show_fraction, show_sha
from tracker.report.document import Column, Document, Kind, Row, Table, Tone, Value
from tracker.units import counted, percent

_MANY_FILES = 8
COLUMNS = (
    Column("commit", "commit", Kind.WORD, show_sha),
    Column("probability", "probability", Kind.NUMBER, show_fraction),
    Column("bandwidth_change", "measured", Kind.NUMBER, show_change),
    Column("state", "state", Kind.WORD),
    Column("subject", "subject"),
    Column("reason", None),
)


def bisect_document(question: Question, answer: Answer, repository: Repository) -> Document:
    """Return the report of a bisection; exit code 0 for a certain answer, else 3."""
    facts: dict[str, Value] = {
        "test": question.test,
        "good": question.good,
        "bad": question.bad,
        "culprit": answer.culprits[0] if len(answer.culprits) == 1 else None,
        "culprits": answer.culprits,
        "probability": answer.probability,
        "certain": answer.certain,
        "commits": len(answer.line),
        "readings": answer.readings,
        "bandwidth_change": answer.verdict.effect if answer.verdict else None,
    }
    what = answer.verdict.case.label if answer.verdict else question.test
    return Document(
        kind="bisect",
        title=f"Which commit changed {what}",
        summary=_summary(answer),
        facts=facts,
        fact_lines=_lines(question, answer, repository),
        tables=(Table("commits", COLUMNS, _rows(answer, repository)),),
        notes=answer.notes,
        exit_code=ExitCode.OK if answer.certain else ExitCode.UNDECIDED,
        failed=not answer.certain,
    )


def _summary(answer: Answer) -> str:
    if answer.verdict is None:
        return (
            "not certain yet: the time did not last for the two ends; run the same command to go on"
        )
    if not answer.culprits:
        return f"{answer.verdict.kind.value} between the two ends: nothing to find"
    who = ", ".join(sha[:12] for sha in answer.culprits)
    sure = f"{answer.probability:.1%}"
    if answer.certain:
        return f"{who} changed the speed, with a probability of {sure}"
    return f"not certain yet: most likely {who}, with {sure}; run the same command to go on"


def _lines(question: Question, answer: Answer, repository: Repository) -> tuple[str, ...]:
    commits = counted(len(answer.line), "commit")
    lines = [f"{commits} after {question.good[:12]} up to {question.bad[:12]}"]
    if answer.verdict is not None and answer.verdict.effect is not None:
        change = percent(answer.verdict.effect, signed=True)
        lines.append(f"between the ends: {change} bandwidth, {answer.verdict.kind.value}")
    if len(answer.culprits) == 1:
        lines += _about(answer.culprits[0], repository)
    return tuple(lines)


def _about(sha: str, repository: Repository) -> list[str]:
    """Return who made a commit, when, and the files it changed."""
    told = repository.run("log", "-1", "--format=%s%n%an%n%cI", sha, check=False).split("\n")
    subject, author, when = [*told, "", "", ""][:3]
    files = repository.changed_files(f"{sha}^", sha)
    more = f" and {len(files) - _MANY_FILES} more" if len(files) > _MANY_FILES else ""
    return [
        f"commit {sha}: {subject}",
        f"by {author}, {when}",
        f"files: {', '.join(files[:_MANY_FILES])}{more}",
    ]


def _rows(answer: Answer, repository: Repository) -> tuple[Row, ...]:
    """Return the commits that were measured, skipped or are likely, newest first."""
    wanted = {*answer.levels, *answer.skipped, *answer.culprits}
    return tuple(_row(sha, answer, repository) for sha in reversed(answer.line) if sha in wanted)


def _row(sha: str, answer: Answer, repository: Repository) -> Row:
    level = answer.levels.get(sha)
    state = "skipped" if sha in answer.skipped else "measured" if level else "not measured"
    return Row(
        values={
            "commit": sha,
            "probability": answer.chances.get(sha),
            "bandwidth_change": exp(-level.shift) - 1 if level else None,
            "state": state,
            "subject": repository.run("log", "-1", "--format=%s", sha, check=False),
            "reason": answer.skipped.get(sha),
        },
        tone=Tone.WORSE if sha in answer.culprits else Tone.PLAIN,
    )
