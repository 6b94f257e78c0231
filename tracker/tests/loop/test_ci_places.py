"""`bandwatch ci` wherever CI puts it: shallow clones, merge commits, folders that somebody else left."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracker.tests.loop import fake
from tracker.tests.loop.conftest import OUT, Command, outcomes, report
from tracker.tests.loop.fake import FakeMeasure

pytestmark = pytest.mark.usefixtures("no_ci")


def cloned(source: Path, clone: Path, *words: str) -> Path:
    """Make a shallow clone, of depth 1 unless the words say another, and return its folder."""
    fake.git(clone.parent, "clone", "--quiet", "--depth=1", *words, source.as_uri(), str(clone))
    return clone


@pytest.fixture
def shallow(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of depth 1 of the project, the working folder."""
    clone = cloned(history, tmp_path / "clone")
    monkeypatch.chdir(clone)
    return clone


@pytest.fixture
def known(baseline: Path) -> str:
    """The address of the store that knows the results of the project's main line."""
    return f"sqlite:///{baseline}/.bandwatch/bandwatch.db"


def merged_feature(project: Path, *onto: str) -> tuple[str, str]:
    """Merge a slower commit of a branch upon a new head; return the merge's base and that commit."""
    base = fake.git(project, "rev-parse", "HEAD")
    fake.git(project, "switch", "--quiet", "--create", "feature")
    head = fake.commit(project, "Try", {fake.SPEEDS: json.dumps({"relu": 1.1, "add": 1.0})})
    fake.git(project, "switch", "--quiet", *onto, base)
    fake.git(project, "merge", "--quiet", "--no-ff", "-m", "Merge", "feature")
    return base, head


def test_a_shallow_clone_is_measured_and_says_what_it_cannot_know(
    shallow: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    assert bandwatch("ci").code == 0
    assert outcomes() == {"relu": "no baseline", "add": "no baseline"}
    # The same commit again finds its own run all the same.
    assert bandwatch("ci").code == 0
    assert outcomes() == {"relu": "no change", "add": "no change"}


def test_a_shallow_clone_is_judged_by_what_the_store_knows_of_its_ancestors(
    baseline: Path,
    known: str,
    no_processes: FakeMeasure,
    bandwatch: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = fake.git(baseline, "rev-parse", "main~3")
    for depth, commit in ((1, "main~2"), (2, "main~1")):
        fake.git(baseline, "branch", "--force", "tip", commit)
        words = (f"--depth={depth}", "--branch=tip")
        monkeypatch.chdir(cloned(baseline, tmp_path / f"clone-{depth}", *words))
        assert bandwatch("ci", "--no-record", "--store", known).code == 1
        assert outcomes()["relu"] == "regression"
        assert measured[:12] in report()["tables"]["verdicts"][0]["baseline"]


def test_a_pull_request_in_a_shallow_clone_is_judged_against_its_base(
    baseline: Path,
    known: str,
    no_processes: FakeMeasure,
    bandwatch: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base, head = merged_feature(baseline, "--create", "tip")
    clone = cloned(baseline, tmp_path / "clone", "--branch=tip")
    fake.git(clone, "switch", "--quiet", "--detach")
    pull = {"head": {"sha": head}, "base": {"sha": base}}
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": pull}))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.chdir(clone)
    assert bandwatch("ci", "--no-record", "--store", known).code == 1
    assert outcomes() == {"relu": "regression", "add": "no change"}
    assert base[:12] in report()["tables"]["verdicts"][0]["baseline"]
    # Nobody's clone has the test merge: what is to be typed fetches it.
    merge = fake.git(clone, "rev-parse", "HEAD")
    told = (OUT / "comment.md").read_text("utf-8")
    assert f"git fetch origin {merge} && git switch --detach {merge[:12]} && bandwatch" in told


def test_turns_in_a_shallow_clone_are_left_out_and_it_is_said(
    shallow: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    answer = bandwatch("ci", "--ab")
    assert answer.code == 0
    told = " ".join(answer.out.split())
    assert "not compared in turns" in told
    assert "this clone is shallow: fetch its whole history" in told


def test_a_merge_commit_is_judged_against_the_main_line(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    base, _ = merged_feature(baseline, "--detach")
    assert bandwatch("ci").code == 1
    assert outcomes()["relu"] == "regression"
    assert base[:12] in report()["tables"]["verdicts"][0]["baseline"]


FORGED: list[list[Any]] = [
    [{"step": "kept head", "files": "head-0.json"}],
    [{"step": "kept head", "files": [["head-0.json"]]}],
    [{"step": "kept head", "files": {"a": 1}}],
    [{"step": "kept head", "files": None}],
    [{"step": "kept head", "files": 7}],
    [{"step": "kept head"}],
    [{"step": "kept head", "files": [f"head-{n}.json" for n in range(1000)]}],
    [{"step": "ancestors", "shas": "abc"}],
    [{"step": "ancestors", "shas": [1, None, {}]}],
    [{"step": "failed", "tests": "all", "texts": {"a": 1}}],
    [{"step": "failed", "tests": [1, "x\n::error::y"], "texts": [None, "\u202e"]}],
    [{"step": "stopped", "text": {"a": "b"}, "code": "four"}],
    [{"step": "stopped", "text": "x" * 100_000, "code": 10**30}],
    [{"step": "problem", "text": 3}] * 200,
    [{"step": "started", "quick": "yes", "keyword": ["a"]}],
    [{"step": "started", "quick": True, "keyword": "x'; rm -rf / #\n\u202e`"}],
    [{"step": "waivers", "entries": [{"pattern": 1}]}],
    [{"step": "waivers", "entries": 7}],
    [{"step": "waivers", "entries": [[]]}],
    [{"step": 7}, {}, {"step": None}],
    [{"step": "kept turn-head", "files": [], "looks": "many"}],
]


def test_a_session_that_somebody_forged_is_one_line_or_a_report(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path
) -> None:
    assert bandwatch("ci").code == 0
    notebook = json.loads((OUT / "session.json").read_text())
    forged = tmp_path / "forged"
    forged.mkdir()
    for path in OUT.glob("*-*.json"):
        (forged / path.name).write_bytes(path.read_bytes())
    for entries in FORGED:
        kept = [e for e in notebook["entries"] if e["step"] not in {e.get("step") for e in entries}]
        (forged / "session.json").write_text(json.dumps({**notebook, "entries": kept + entries}))
        answer = bandwatch("ci", "--from", str(forged), "--out", str(tmp_path / "out"))
        assert answer.code in {0, 1, 2, 3}, (entries, answer.err)
        if answer.code == 2:
            assert answer.err.startswith("bandwatch: cannot read ")
            assert answer.err.count("\n") == 1
            continue
        comment = (tmp_path / "out/comment.md").read_text("utf-8")
        assert len(comment) < 65_536
        assert "\u202e" not in comment
        assert "\n::error::" not in comment


def test_a_pull_request_cannot_waive_its_own_loss(
    baseline: Path,
    no_processes: FakeMeasure,
    bandwatch: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")
    assert bandwatch("ci").code == 1
    notebook = json.loads((OUT / "session.json").read_text())
    waiver = {
        "pattern": "*",
        "author": "A. Person",
        "note": "on purpose",
        "expires_at": None,
        "gpu_model": None,
        "action": "granted",
        "at": "2026-01-01T00:00:00+00:00",
    }
    notebook["entries"].append({"step": "waivers", "entries": [waiver]})
    (OUT / "session.json").write_text(json.dumps(notebook))
    judging = ("ci", "--from", str(OUT), "--out", str(tmp_path / "out"))
    assert bandwatch(*judging).code != 1
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    answer = bandwatch(*judging)
    assert answer.code == 1
    assert "waivers are not taken" in answer.out


def test_a_notebook_that_is_no_notebook_is_one_line(
    baseline: Path, bandwatch: Command, tmp_path: Path
) -> None:
    for number, text in enumerate(('{"schema": 1}', "[]", "{", "7", '{"entries": [1]}', "\x00")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "session.json").write_text(text)
        answer = bandwatch("ci", "--from", str(folder), "--out", str(tmp_path / "out"))
        assert answer.code == 2, text
        assert answer.err.count("\n") == 1
