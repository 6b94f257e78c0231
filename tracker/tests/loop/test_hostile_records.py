"""A record whose every free text is hostile, judged and reported: nothing gets out of any format."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tracker.loop.session import Session
from tracker.record import dump_run, load_run
from tracker.tests.cli.conftest import run_of_commit
from tracker.tests.factory import sha
from tracker.tests.loop.conftest import Command
from tracker.tests.report.samples import HOSTILE
from tracker.tests.report.test_escape import _OWN_TAGS, _UNSAFE, rendered
from tracker.tests.report.test_pages import parse

# What else is GitHub's: references, commands behind odd spaces, values of steps.
MORE = (
    "GH-1 and acme/kernels#2",
    "someone@evil.example",
    "x,line=9::y",
    "%0A::error::x",
    "\u2028::error::x",
    "\x85::stop-commands::x",
    "x<<EOF\nverdict=ok\nEOF",
    "]]><!--",
    "[^1]: note",
    "$\\href{https://evil.example}{x}$",
    "../../../etc/passwd",
)
# Texts that only some values fit; everything else of a record is free.
BOUND = frozenset({"schema", "kind", "run_id", "status", "backend", "sha", "parents"})
OURS = (
    r"::error( file=[^:,]*,line=\d+,title=[^:,]*)?::.*|::notice::\d+ more are in the step summary"
)


def spoilt(value: Any, texts: Iterator[str], key: str = "") -> Any:
    """Return a record with the next hostile text in each place that takes any."""
    if isinstance(value, dict):
        found = {
            name: inner if name in BOUND else spoilt(inner, texts, name)
            for name, inner in value.items()
        }
        if key in {"libraries", "ci", "reasons", "parameters"}:
            text = next(texts)
            found[text[:100]] = text[:100]
        return found
    if isinstance(value, list):
        return [spoilt(inner, texts, key) for inner in value]
    return (
        next(texts)[:190] if isinstance(value, str) and not key.endswith(("_at", "time")) else value
    )


@pytest.fixture
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of records that another job left: a regression, every text of it hostile."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.bandwatch]\n")
    session = Session.begin(tmp_path / "records", "key", quick=True, keyword="\x1b[2J`x`")
    session.note("ancestors", shas=[sha(3)])
    # Both the same, so that the cases are; the head is a fifth slower.
    for name, number, factor in (("base", 3, 1.0), ("head", 4, 1.2)):
        texts = cycle((*HOSTILE, *MORE))
        run = dump_run(run_of_commit(number, factor))
        run["notes"] = ["x"] * 30
        for result in run["results"]:
            result["case"]["parameters"] = {"p": "x"}
            result["correctness"]["detail"] = "x"
            result["during"]["throttle_reasons"] = ["x"]
        path = tmp_path / f"records/{name}-0.json"
        path.write_text(json.dumps(spoilt(run, texts)))
        assert load_run(path).notes[0] in (*HOSTILE, *MORE)
        session.note(f"kept {name}", files=[path.name])
    session.note("failed", tests=list(HOSTILE), texts=[f"{text} failed" for text in HOSTILE])
    for text in (*HOSTILE, *MORE):
        session.note("problem", text=text)
    return tmp_path / "records"


def test_nothing_of_a_hostile_record_gets_out(
    left_behind: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = left_behind.parent
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(folder / "output"))
    for form in ("github", "text"):
        answer = bandwatch(
            *("ci", "--from", str(left_behind), "--out", str(folder / "out"), "--format", form)
        )
        assert answer.code == 1, answer.err
        assert not _UNSAFE.search(answer.out + answer.err)
        commands = [s for s in answer.out.splitlines() if s.lstrip().startswith("::")]
        assert [line for line in commands if not re.fullmatch(OURS, line)] == []
        # Ten errors, the failed tests' first, and how many more there are.
        assert len(commands) == (11 if form == "github" else 0)
        assert "##[" not in answer.out
    lines = (folder / "output").read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z_]+=[^\x00-\x1f]*", line)] == []
    assert "verdict=regression" in lines
    assert lines.count("verdict=ok") == 0
    for path in (folder / "summary.md", folder / "out/comment.md"):
        page = rendered(path.read_text("utf-8"))
        assert page.tags <= _OWN_TAGS | {"details", "summary", "h4"}
        outside = re.sub(r"`[^`]*`|<code>.*?</code>", "", path.read_text("utf-8"))
        assert not re.search(r"://|www\.|(?i:\bgh-\d)", outside)
        assert not re.search(r"&#(64|35);(?!&#8203;)", outside)
    assert len(list(ET.parse(folder / "out/junit.xml").iter("testcase"))) == 3
    assert "exit 1" in parse((folder / "out/report.html").read_text("utf-8"))
