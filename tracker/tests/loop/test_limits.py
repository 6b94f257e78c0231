"""Reports of thousands of cases and of hostile length stay within what GitHub takes."""

import io
import re
from pathlib import Path

import pytest

from tracker.errors import ExitCode
from tracker.loop.ci_report import TITLE, Links, comment, summary_text, write_files, write_summary
from tracker.loop.session import Session
from tracker.model import VerdictKind
from tracker.reasons import Reason, ReasonCode
from tracker.report.document import Document
from tracker.report.judged import Judged
from tracker.report.verdicts import COMMENT_LIMIT as COMMENT_ROWS
from tracker.report.verdicts import Heading, verdict_document
from tracker.tests.report.samples import HOSTILE, make_judged

COMMENT, SUMMARY = 65_536, 1_048_576
# As the action that posts the comment adds it.
MARK = "\n<!-- Sticky Pull Request Commentgpu-benchmarks -->"
LINKS = Links({"log and records": "https://github.example/a/b/actions/runs/1"}, "bandwatch ci --ab")


def cases(kind: VerdictKind, count: int, name: str = "kernel") -> list[Judged]:
    return [
        make_judged(
            kind,
            f"{name}{number}",
            effect=-0.5 + number * 1e-6,
            reasons=(Reason(ReasonCode.SIGNIFICANT, f"because of number {number}"),),
        )
        for number in range(count)
    ]


def both(judged: list[Judged], notes: tuple[str, ...] = ()) -> tuple[Document, Document]:
    heading = Heading(TITLE, notes, {}, notes)
    return (
        verdict_document(heading, judged, ExitCode.REGRESSION, limit=None),
        verdict_document(heading, judged, ExitCode.REGRESSION, limit=COMMENT_ROWS),
    )


@pytest.mark.parametrize("name", ["kernel", *HOSTILE, "\U0001f600" * 200])
def test_hundreds_of_regressions_leave_a_comment_that_github_takes(name: str) -> None:
    _, short = both(cases(VerdictKind.REGRESSION, 500, name))
    text = comment(short, LINKS)
    assert len(text + MARK) <= COMMENT
    shown = len(re.findall(r"slower\*\*", text))
    assert shown > 10
    assert f"{500 - shown} more rows did not fit and were cut." in text
    assert "Reproduce: `bandwatch ci --ab`" in text


def test_thousands_of_cases_leave_a_summary_that_github_keeps(tmp_path: Path) -> None:
    judged = cases(VerdictKind.REGRESSION, 40) + cases(VerdictKind.NO_CHANGE, 6000, "same")
    full, short = both(judged)
    out, summary = io.StringIO(), tmp_path / "summary.md"
    summary.write_text("x" * 100_000)
    write_summary(full, short, LINKS, out, {"GITHUB_STEP_SUMMARY": str(summary)})
    assert summary.stat().st_size <= SUMMARY
    text = summary.read_text("utf-8")[100_000:]
    assert text.count("slower**") >= 40
    assert "hidden: 6000 no change" in text
    assert "All 6040 cases" in text
    assert text.rstrip().endswith("</details>")
    assert re.search(r"\d+ more rows did not fit and were cut", text)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "::notice::30 more are in the step summary" in lines


def test_a_summary_without_room_gets_nothing_rather_than_too_much() -> None:
    full, short = both(cases(VerdictKind.REGRESSION, 100))
    for room in (0, 100, 1000, 5000, 100_000):
        assert len(summary_text(full, short, LINKS, room).encode()) <= room


def test_a_session_with_more_notes_than_are_told_says_how_many(tmp_path: Path) -> None:
    session = Session.begin(tmp_path / "out", "key")
    for number in range(50):
        session.note("problem", text=f"problem {number}")
    assert len(session.texts("problem")) == 50
    for number in range(50, 53):
        session.note("problem", text=f"problem {number}")
    *told, last = session.texts("problem")
    assert told == [f"problem {number}" for number in range(50)]
    assert last == "3 more like these; session.json has them"


@pytest.mark.parametrize("length", [100, 10_000, 200_000])
def test_notes_of_any_length_leave_a_comment_that_github_takes(length: int) -> None:
    notes = tuple(f"{number} " + "@x <b> | `" * (length // 10) for number in range(50))
    _, short = both(cases(VerdictKind.REGRESSION, 5), notes)
    text = comment(short, LINKS)
    assert len(text + MARK) <= COMMENT
    assert "5 regressions of 5 cases" in text


def test_the_files_of_a_large_run_are_written_whole(tmp_path: Path) -> None:
    judged = cases(VerdictKind.REGRESSION, 3) + cases(VerdictKind.NO_CHANGE, 5000, "same")
    full, short = both(judged)
    write_files(tmp_path, full, short, LINKS)
    assert 'tests="5003"' in (tmp_path / "junit.xml").read_text("utf-8")
    assert (tmp_path / "report.json").read_text("utf-8").count('"fingerprint"') == 5003
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("<tr") >= 5003
    assert '<a rel="noreferrer" href="https://github.example/a/b/actions/runs/1">' in page
    assert "Reproduce: <code>bandwatch ci --ab</code>" in page
