"""`bandwatch triage`: decisions on change points, with author and reason, all kept."""

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.loop.notify import AUTHOR, news, tell
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_log, waiver_log
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
                    median_cycles=257_400.0 * factor,
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


@pytest.mark.usefixtures("history")
def test_an_accepted_level_ends_and_is_open_again(
    bandwatch: Command, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ("--author", "Ada", "--note", "exact")
    over = bandwatch("triage", "accept", sha(CHANGED), *told, "--until", "2026-01-31")
    assert over.code == 2
    assert "that day is over" in over.err
    assert bandwatch("triage", "accept", sha(CHANGED), *told, "--until", "2099-01-31").code == 0
    assert listed(bandwatch("triage", "list", "--format", "json")) == []
    with Store.open(str(history / "runs.db")) as store:
        assert {entry.expires_at for entry in triage_log(store)} == {"2099-01-31T23:59:59+00:00"}
    monkeypatch.setattr("tracker.cli.triage.has_ended", lambda _entry, _at: True)
    found = listed(bandwatch("triage", "list", "--format", "json"))
    assert {(row["state"], row["note"]) for row in found} == {("expired", "exact")}


@pytest.mark.usefixtures("history")
def test_nothing_is_accepted_for_ever(bandwatch: Command, history: Path) -> None:
    bandwatch("triage", "accept", sha(CHANGED), "relu", "--author", "Ada", "--note", "exact")
    with Store.open(str(history / "runs.db")) as store:
        (entry,) = triage_log(store)
    assert entry.expires_at is not None
    ends = datetime.fromisoformat(entry.expires_at) - datetime.now(UTC)
    assert 179 <= ends.days <= 180


def test_a_change_that_was_told_and_is_gone_is_listed_as_retracted(
    history: Path, bandwatch: Command
) -> None:
    mul = make_case("mul").fingerprint
    told = Triage(mul, "NVIDIA H200", sha(5), TriageState.NEW, AUTHOR, "regression: sent", sha(4))
    with Store.open(str(history / "runs.db")) as store:
        add_triage(store, replace(told, effect=-0.03))
    found = listed(bandwatch("triage", "list", "--state", "retracted", "--format", "json"))
    assert [(row["case"].split("/")[0], row["commit"]) for row in found] == [("mul", sha(5))]
    assert len(listed(bandwatch("triage", "list", "--format", "json"))) == 2


WAIVE = ("triage", "waive", "relu/*", "--author", "Ada", "--note", "driver bug", "--until")


def waived(answer: Answer) -> list[tuple[str, str, str]]:
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["tables"].get("waivers", [])
    return [(row["state"], row["pattern"], row["note"]) for row in rows]


@pytest.mark.usefixtures("history")
def test_a_waiver_lets_a_loss_pass_and_says_so(bandwatch: Command) -> None:
    lost = sha(CHANGED)
    before = bandwatch("check", lost)
    assert before.code == 1
    assert bandwatch(*WAIVE, "2099-01-31").code == 0
    assert bandwatch("check", lost).code == 1, "add is slower too and nobody waived it"
    assert bandwatch("triage", "waive", "add/*", *WAIVE[3:], "2099-01-31").code == 0
    after = bandwatch("check", lost)
    assert after.code == 0
    assert "waived by Ada until 2099-01-31: driver bug" in after.out
    assert "2 regressions" in after.out


@pytest.mark.usefixtures("history")
def test_waivers_are_listed_and_revoked_and_stay_on_record(
    bandwatch: Command, history: Path
) -> None:
    assert bandwatch(*WAIVE, "2099-01-31").code == 0
    active = waived(bandwatch("triage", "waivers", "--format", "json"))
    assert active == [("active", "relu/*", "driver bug")]
    revoke = ("triage", "revoke", "relu/*", "--author", "Grace", "--note", "fixed")
    assert bandwatch(*revoke).code == 0
    assert waived(bandwatch("triage", "waivers", "--format", "json")) == [
        ("revoked", "relu/*", "fixed")
    ]
    again = bandwatch(*revoke)
    assert again.code == 2
    assert "no such waiver holds" in again.err
    with Store.open(str(history / "runs.db")) as store:
        assert [entry.author for entry in waiver_log(store)] == ["Ada", "Grace"]


@pytest.mark.usefixtures("history")
def test_a_waiver_without_an_end_or_a_reason_is_refused(bandwatch: Command) -> None:
    endless = bandwatch("triage", "waive", "relu/*", "--author", "Ada", "--note", "x")
    assert endless.code == 2
    assert "--until" in endless.err
    silent = bandwatch("triage", "waive", "*", "--author", "Ada", "--note", " ", *("--until", DAY))
    assert silent.code == 2
    assert "without a reason" in silent.err


@pytest.mark.usefixtures("history")
def test_a_waiver_that_fits_no_recorded_case_is_refused(bandwatch: Command, history: Path) -> None:
    label = make_case("mul").label
    assert "[" in label
    said = ("--author", "Ada", "--note", "removed", "--until", DAY)
    for arguments in (("rellu/*",), (f"{label[:-1]}",), (label, "--gpu", "NVIDIA none")):
        answer = bandwatch("triage", "waive", *arguments, *said)
        assert answer.code == 2
        assert answer.err.count("\n") == 1
        assert f"cannot waive {arguments[0]!r}: no recorded case" in answer.err
    # A label as it is printed fits itself, brackets included.
    assert "1 case waived until" in bandwatch("triage", "waive", label, *said).out
    with Store.open(str(history / "runs.db")) as store:
        assert [entry.pattern for entry in waiver_log(store)] == [label]


DAY = "2099-01-31"
