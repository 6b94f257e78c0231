"""The report of a session, for people and machines, and the files that carry it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TextIO
from urllib.parse import quote

from tracker.errors import ConfigError, ExitCode
from tracker.loop.ab import FAILED_TOLD
from tracker.loop.ci import FAILED, NOT_MEASURED, UNRECORDED
from tracker.loop.judging import Judgement
from tracker.loop.session import Session
from tracker.model import DeviceState, Result, Run, Status
from tracker.report.document import Document
from tracker.report.escape import code, plain, prose
from tracker.report.github import (
    OUTPUT_VARIABLE,
    SUMMARY_VARIABLE,
    annotations,
    step_outputs,
)
from tracker.report.headings import run_heading
from tracker.report.html import to_html
from tracker.report.json_ import to_json
from tracker.report.junit import to_junit
from tracker.report.markdown import COMMENT_LIMIT, SUMMARY_LIMIT, to_markdown
from tracker.report.verdicts import Heading, verdict_document
from tracker.units import counted, percent

# True of a CPU too: a line below names the device.
TITLE = "Benchmarks"
# What posts a comment adds a mark by which it finds it again.
_MARK = 1024
COMMENT, HTML, JUNIT, JSON = "comment.md", "report.html", "junit.xml", "report.json"
_NAMES_ONLY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~:/-?&=%")


@dataclass(frozen=True, slots=True)
class Links:
    """Where more is to be seen: address by what it is called, and the command to reproduce."""

    pages: Mapping[str, str]
    command: str


def session_document(
    session: Session, found: Judgement, *, limit: int | None, strict: bool = True
) -> Document:
    """Return the report of a session; `limit` None hides no row.

    Unless `strict`, cases that could not be decided are told and fail nothing.
    """
    stopped = session.facts(NOT_MEASURED)
    unrecorded = session.texts(UNRECORDED)
    exit_code = found.code if strict or not found.hesitant else ExitCode.OK
    if stopped:
        exit_code = _stopped_code(stopped[-1].get("code"), exit_code)
    if unrecorded and exit_code is ExitCode.OK:
        exit_code = ExitCode.USAGE
    failed = session.words(FAILED, "tests")
    if failed or found.broken:
        exit_code = ExitCode.REGRESSION
    notes = (
        *session.texts(NOT_MEASURED),
        *_failed(session, len(failed)),
        *unrecorded,
        *session.texts("problem"),
        *found.notes,
    )
    heading = Heading(TITLE, (), {}, notes)
    if found.runs:
        heading = run_heading(TITLE, found.runs[0], notes)
        lines = (*heading.fact_lines, *_further(session, found), *_conditions(found.measured))
        heading = Heading(TITLE, lines, heading.facts, heading.notes)
    return verdict_document(heading, found.judged, exit_code, limit=limit, every_row=JSON)


def troubles(session: Session) -> tuple[str, ...]:
    """Return what stopped a session, and the tests that failed."""
    return (*session.texts(NOT_MEASURED), *session.words(FAILED, "texts")[:FAILED_TOLD])


def _failed(session: Session, count: int) -> Iterable[str]:
    if count:
        told = session.words(FAILED, "texts")[:FAILED_TOLD]
        yield f"{counted(count, 'test')} failed: no time of a failed test counts"
        yield from told
        if count > len(told):
            yield f"{counted(count - len(told), 'more failed test')}; session.json names them"


def _stopped_code(value: object, judged: ExitCode) -> ExitCode:
    """Return the code of a session that stopped: a regression found before stays one."""
    if judged is ExitCode.REGRESSION:
        return judged
    return ExitCode.UNFIT if value == int(ExitCode.UNFIT) else ExitCode.UNDECIDED


def _further(session: Session, found: Judgement) -> Iterable[str]:
    repeats = session.runs("repeat")
    if repeats:
        cases = len({r.case.fingerprint for run in repeats for r in run.results})
        again = counted(cases, "case")
        yield f"{again} measured again, in up to {counted(len(repeats), 'fresh process')}"
    if found.in_turns:
        base = session.runs("turn-base")[0].checkout.commit
        name = base.sha[:12] if base else "the base"
        yield f"{counted(found.in_turns, 'case')} measured in turns with {name}"
    if len(found.runs) > 1:
        yield f"{len(found.runs)} devices measured"


def _conditions(runs: Sequence[Run]) -> Iterable[str]:
    """Yield what the device did meanwhile, and how wide the samples were."""
    results = [result for run in runs for result in run.results]
    spread = [
        (result.summary.q3_s - result.summary.q1_s) / result.summary.median_s
        for result in results
        if result.summary
    ]
    parts = [f"middle half of a sample within {percent(median(spread))}"] if spread else []
    for status in (Status.NOISY, Status.THROTTLED):
        count = sum(result.status is status for result in results)
        parts += [f"{count} {status.value}"] if count else []
    clocks = [state.sm_clock_hz for state in _states(results) if state.sm_clock_hz]
    if clocks:
        parts.append(f"SM clock {min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz")
    heat = [state.temperature_c for state in _states(results) if state.temperature_c is not None]
    if heat:
        parts.append(f"up to {max(heat):.0f} C")
    reasons = sorted({reason for state in _states(results) for reason in state.throttle_reasons})
    parts += [f"limited by {', '.join(reasons)}"] if reasons else []
    others = max((state.other_processes or 0 for state in _states(results)), default=0)
    parts += [f"{others} other processes on the device"] if others else []
    if parts:
        yield f"conditions: {'; '.join(parts)}"


def _states(results: Sequence[Result]) -> list[DeviceState]:
    return [result.during for result in results if result.during is not None]


def links_from(
    environ: Mapping[str, str], page: str | None, document: Document, command: str
) -> Links:
    """Return links to the CI run with its artefacts and to the dashboard's page of this run."""
    pages = {}
    if environ.get("GITHUB_ACTIONS") == "true":
        server, name = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
        if server and name and environ.get("GITHUB_RUN_ID"):
            pages["log and records"] = f"{server}/{name}/actions/runs/{environ['GITHUB_RUN_ID']}"
    run = document.facts.get("run")
    if page and run:
        pages["dashboard"] = f"{page.rstrip('/')}/?run={quote(str(run), safe='')}"
    return Links({k: url for k, url in pages.items() if _is_plain(url)}, command)


def _is_plain(url: str) -> bool:
    return url.startswith(("https://", "http://")) and _NAMES_ONLY.issuperset(url)


def write_files(folder: Path, full: Document, short: Document, links: Links) -> None:
    """Write the report as JSON, JUnit XML, HTML and as the text of a comment.

    Raises ConfigError when the folder cannot be written.
    """
    files = {
        JSON: to_json(full),
        JUNIT: to_junit(full),
        HTML: to_html(short, links.pages, links.command),
        COMMENT: comment(short, links),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write the report into {folder}: {error.strerror or error}"
        ) from None


def comment(document: Document, links: Links, limit: int = COMMENT_LIMIT - _MARK) -> str:
    """Return the report as a comment of at most `limit` bytes, links and command at its end."""
    tail = _tail(links)
    room = limit - len(tail.encode())
    return to_markdown(document, limit=room) + tail if room >= 0 else ""


def _tail(links: Links) -> str:
    places = " · ".join(f"[{prose(name)}]({url})" for name, url in links.pages.items())
    # An empty line first: what stands above may be a list, whose last item would take this in.
    return "".join(f"\n{line}\n" for line in (places, f"Reproduce: {code(links.command)}") if line)


def write_summary(
    full: Document,
    short: Document,
    links: Links,
    stream: TextIO,
    environ: Mapping[str, str],
    troubles: Sequence[str] = (),
) -> None:
    """Write annotations, the step summary with every row folded, and the step's outputs.

    `troubles` are annotated too: a log without the reason sends its reader elsewhere.
    Raises ConfigError when a file that the environment names cannot be written.
    """
    stream.writelines(f"{line}\n" for line in annotations(short, troubles))
    stream.write(f"{plain(short.summary)}\n")
    summary, outputs = environ.get(SUMMARY_VARIABLE), environ.get(OUTPUT_VARIABLE)
    if summary:
        path = Path(summary)
        used = path.stat().st_size if path.is_file() else 0
        _append(path, summary_text(full, short, links, SUMMARY_LIMIT - used), SUMMARY_VARIABLE)
    else:
        stream.write(f"\n{comment(short, links)}")
    if outputs:
        _append(Path(outputs), step_outputs(short), OUTPUT_VARIABLE)


def summary_text(full: Document, short: Document, links: Links, limit: int) -> str:
    """Return what fits of: the comment, then all rows folded away."""
    text = comment(short, links, min(limit, COMMENT_LIMIT - _MARK))
    hidden = sum(row.hidden for table in short.tables for row in table.rows)
    rows = sum(len(table.rows) for table in full.tables)
    frame = (f"\n<details><summary>All {rows} cases</summary>\n\n", "\n</details>\n")
    room = limit - len(text.encode()) - sum(len(part.encode()) for part in frame)
    if not hidden or room < 1000:
        return text
    return text + frame[0] + to_markdown(full, limit=room) + frame[1]


def _append(path: Path, text: str, variable: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            f"cannot write the file that {variable} names: {error.strerror or error}; "
            "unset it or correct it"
        ) from None
