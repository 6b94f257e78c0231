"""`bandwatch triage`: decisions on change points, with author and reason, all kept."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.loop.notify import news, tell
from tracker.store import Store
from tracker.store.people import TriageState, triage_log
from tracker.tests.cli.conftest import Answer, Command
from tracker.tests.factory import make_case, make_result, make_run, sha

CHANGED = 11


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the eleventh commit made relu and add a fifth slower, but not mul."""
    path = tmp_path_factory.mktemp("triage") / "runs.db"
    with Store.open(str(path)) as store:
        for number in range(1, 21):
            rng = np.random.default_rng(number)
            slower = 1.2 if number >= CHANGED else 1.0
            results = tuple(
                make_result(
                    make_case(kernel),
                    [float(t) for t in 1.3e-4 * factor * np.exp(rng.normal(0, 0.002, 20))],
                    warnings=(),
                )
                for kernel, factor in (("relu", slower), ("add", slower), ("mul", 1.0))
            )
            store.record(make_run(f"run-of-{number:03d}", number, results=results, notes=()))
    return path


@pytest.fixture
def history(project: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project with these runs, and no git settings but its own."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    (project / "runs.db").write_bytes(recorded.read_bytes())
    return project


def listed(answer: Answer) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.err
    tables = json.loads(answer.out)["tables"]
    found: list[dict[str, Any]] = tables.get("changes", [])
    return found


@pytest.mark.usefixtures("history")
def test_new_changes_are_listed_with_what_they_are(bandwatch: Command) -> None:
    found = listed(bandwatch("triage", "list", "--format", "json"))
    assert {row["case"].split("/")[0] for row in found} == {"relu", "add"}
    for row in found:
        assert (row["state"], row["author"], row["note"]) == ("new", None, None)
        assert (row["commit"], row["previous_commit"]) == (sha(CHANGED), sha(CHANGED - 1))
        assert row["bandwidth_change"] == pytest.approx(1 / 1.2 - 1, abs=0.005)


def test_a_decision_is_kept_with_author_and_reason(history: Path, bandwatch: Command) -> None:
    done = bandwatch("triage", "accept", sha(CHANGED), "relu", "--note", "exact", "--author", "Ada")
    assert (done.code, done.err) == (0, "")
    assert "accepted: 1 change point, by Ada" in done.out
    with Store.open(str(history / "runs.db")) as store:
        (entry,) = triage_log(store)
    assert (entry.state, entry.author, entry.note) == (TriageState.ACCEPTED, "Ada", "exact")
    assert (entry.commit_sha, entry.previous_sha) == (sha(CHANGED), sha(CHANGED - 1))
    left = listed(bandwatch("triage", "list", "--format", "json"))
    assert [row["case"].split("/")[0] for row in left] == ["add"]
    accepted = listed(bandwatch("triage", "list", "--state", "accepted", "--format", "json"))
    assert [(row["author"], row["note"]) for row in accepted] == [("Ada", "exact")]


def test_a_whole_commit_is_decided_and_reopened(history: Path, bandwatch: Command) -> None:
    told = ("--author", "Ada", "--note")
    assert bandwatch("triage", "acknowledge", sha(CHANGED), *told, "mine").code == 0
    assert bandwatch("triage", "reopen", sha(CHANGED), "add", *told, "not only mine").code == 0
    found = listed(bandwatch("triage", "list", "--format", "json"))
    assert {row["case"].split("/")[0]: row["state"] for row in found} == {
        "relu": "acknowledged",
        "add": "reopened",
    }
    with Store.open(str(history / "runs.db")) as store:
        assert len(triage_log(store)) == 3


def test_git_says_who_decides(history: Path, bandwatch: Command) -> None:
    nobody = bandwatch("triage", "accept", sha(CHANGED), "--note", "x")
    assert nobody.code == 2
    assert "git has no user.name here; give --author NAME" in nobody.err
    subprocess.run(["git", "config", "user.name", "Grace"], cwd=history, check=True)
    assert "by Grace" in bandwatch("triage", "accept", sha(CHANGED), "--note", "x").out


def test_what_notify_wrote_is_nobodys_decision(history: Path, bandwatch: Command) -> None:
    with Store.open(str(history / "runs.db")) as store:
        tell(store, news(store, "main"), lambda _: None)
    found = listed(bandwatch("triage", "list", "--format", "json"))
    assert {(row["state"], row["author"]) for row in found} == {("new", None)}


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((sha(CHANGED), "mul"), f"there are some at: {sha(CHANGED)[:12]};"),
        ((sha(3),), "cannot find a change point of this case at commit"),
        (("ffffffff",), "cannot find run"),
        ((sha(CHANGED), "--branch", "release"), "on branch release; there are some at: no commit;"),
        ((sha(CHANGED), "--note", " "), "without a reason"),
    ],
)
def test_what_is_no_change_point_is_refused(
    bandwatch: Command, arguments: tuple[str, ...], told: str
) -> None:
    answer = bandwatch("triage", "accept", "--note", "x", "--author", "Ada", *arguments)
    assert answer.code == 2
    assert told in answer.err
    assert "Traceback" not in answer.err
