"""Telling the team: each change once, grouped, nothing twice after a crash, the address a secret."""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import ConfigError
from tracker.loop.notify import AUTHOR, News, Telling, UncertainError, news, tell
from tracker.loop.webhook import (
    Form,
    NotSentError,
    address_from,
    form_of,
    line_of,
    message,
    post,
)
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_log, triage_states
from tracker.tests.factory import make_case, make_result, make_run, sha
from tracker.tests.loop.conftest import Command
from tracker.tests.report.samples import HOSTILE

SECRET = "s3cr3t-token"


def record(store: Store, speeds: Sequence[tuple[float, float]], first: int = 1) -> None:
    """Record one run a commit: how many times slower relu and add are."""
    for number, (relu, add) in enumerate(speeds, start=first):
        rng = np.random.default_rng(number)
        results = tuple(
            make_result(
                make_case(kernel),
                [float(t) for t in 1.3e-4 * slow * np.exp(rng.normal(0, 0.002, 40))],
                warnings=(),
            )
            for kernel, slow in (("relu", relu), ("add", add))
        )
        store.record(make_run(f"run-of-commit-{number:03d}", number, results=results, notes=()))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


STEADY = [(1.0, 1.0)] * 15
SLOW = [(1.2, 1.0)] * 12


def told(found: Telling) -> list[tuple[News, str, str]]:
    return [(item.news, item.change.case.kernel, item.change.sha) for item in found.items]


def test_a_steady_store_has_no_news(store: Store) -> None:
    record(store, STEADY)
    assert news(store, "main").items == ()


def test_a_change_is_told_once(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    sent: list[Telling] = []
    found = news(store, "main")
    assert told(found) == [(News.REGRESSION, "relu", sha(16))]
    tell(store, found, sent.append)
    assert len(sent) == 1
    assert news(store, "main") == Telling(())


def test_more_runs_do_not_tell_it_again(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    tell(store, news(store, "main"), lambda _: None)
    record(store, [(1.2, 1.0)] * 8, first=28)
    assert news(store, "main").items == ()


def test_changes_of_one_commit_are_one_group(store: Store) -> None:
    record(store, [*STEADY, *[(1.2, 1.3)] * 12])
    (group,) = news(store, "main").groups
    assert (group.previous_sha, group.sha) == (sha(15), sha(16))
    # The larger loss first.
    assert [item.change.case.kernel for item in group.items] == ["add", "relu"]


def test_a_recovery_is_told(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    tell(store, news(store, "main"), lambda _: None)
    record(store, [(1.0, 1.0)] * 12, first=28)
    found = news(store, "main")
    assert (News.RECOVERED, "relu", sha(16)) in told(found)
    tell(store, found, lambda _: None)
    assert news(store, "main").items == ()


def test_a_change_that_more_runs_deny_is_retracted_once_and_stays_on_record(store: Store) -> None:
    record(store, [(1.0, 1.0)] * 20)
    key = make_case("relu").fingerprint
    early = Triage(
        *(key, "NVIDIA H200", sha(9), TriageState.NEW, AUTHOR, "regression: sent", sha(8), -0.04)
    )
    add_triage(store, early)
    found = news(store, "main")
    assert told(found) == [(News.RETRACTED, "relu", sha(9))]
    assert "retracted, more runs show no change (told: -4.00 %)" in line_of(found.items[0])
    tell(store, found, lambda _: None)
    assert news(store, "main").items == ()
    notes = [entry.note for entry in triage_log(store)]
    assert [note.partition(" ")[0] for note in notes] == ["regression:", "retracted:", "retracted:"]
    assert [notes[0], notes[2]] == ["regression: sent", "retracted: sent"]
    assert notes[1].startswith("retracted: sending ")


def test_what_comes_back_after_a_retraction_is_told_again(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    key = make_case("relu").fingerprint
    for kind in ("regression", "retracted"):
        note = f"{kind}: sent"
        where = (key, "NVIDIA H200", sha(16), TriageState.NEW, AUTHOR, note, sha(15), -0.2)
        add_triage(store, Triage(*where))
    assert told(news(store, "main")) == [(News.REGRESSION, "relu", sha(16))]


def test_a_change_on_another_branch_is_not_retracted(store: Store) -> None:
    record(store, STEADY)
    where = (make_case("relu").fingerprint, "NVIDIA H200", sha(99), TriageState.NEW, AUTHOR)
    add_triage(store, Triage(*where, "regression: sent", sha(98), -0.2))
    assert news(store, "main").items == ()


def test_two_calls_at_once_tell_it_once(store: Store) -> None:
    record(store, STEADY + SLOW)
    first, second = news(store, "main"), news(store, "main")
    sent: list[Telling] = []

    def slowly(telling: Telling) -> None:
        # Meanwhile the other call, which found the same, goes through its whole course.
        tell(store, second, sent.append)
        sent.append(telling)

    tell(store, first, slowly)
    assert [told(one) for one in sent] == [told(first)]
    tell(store, second, sent.append)
    assert len(sent) == 1


def test_of_two_calls_that_noted_the_same_the_first_sends(store: Store) -> None:
    record(store, STEADY + SLOW)
    first, second = news(store, "main"), news(store, "main")
    sent: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        # The second has read the ledger before the first noted anything.
        patch.setattr("tracker.loop.notify._Ledger.wants", lambda ledger, item: True)
        tell(store, first, lambda one: tell(store, second, lambda two: sent.append("second")))
        assert sent == []


def test_a_failed_delivery_is_tried_again(store: Store) -> None:
    record(store, [*STEADY, *SLOW])

    def fail(_: Telling) -> None:
        raise NotSentError("the webhook answered 500")

    with pytest.raises(NotSentError):
        tell(store, news(store, "main"), fail)
    assert len(news(store, "main").items) == 1


def test_what_may_have_arrived_is_not_sent_again_and_is_named(store: Store) -> None:
    record(store, [*STEADY, *SLOW])

    def lose(_: Telling) -> None:
        raise UncertainError("the webhook gave no answer")

    with pytest.raises(UncertainError):
        tell(store, news(store, "main"), lose)
    again = news(store, "main")
    assert again.items == ()
    assert sha(16)[:12] in again.unsure[0]


def test_a_crash_while_sending_sends_nothing_twice_and_is_named(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    found = news(store, "main")
    sent: list[Telling] = []

    class Crash(BaseException):
        pass

    def send(what: Telling) -> None:
        sent.append(what)
        raise Crash

    with pytest.raises(Crash):
        tell(store, found, send)
    again = news(store, "main")
    assert again.items == ()
    assert len(again.unsure) == 1
    assert sha(16)[:12] in again.unsure[0]


def test_what_people_said_of_a_change_stays(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    found = news(store, "main")
    change = found.items[0].change
    key = (change.case.fingerprint, change.gpu_model, change.sha)
    add_triage(store, Triage(*key, TriageState.ACKNOWLEDGED, "Ada", "mine"))
    tell(store, found, lambda _: None)
    assert triage_states(store)[key].state is TriageState.ACKNOWLEDGED
    assert triage_states(store)[key].author == AUTHOR


def test_another_branch_is_not_told_of(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    assert news(store, "release").items == ()


@pytest.fixture
def hook() -> Iterator[dict[str, Any]]:
    """A webhook on the loopback interface: what it got, and what it answers."""
    state: dict[str, Any] = {"got": [], "answer": 200}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state["got"].append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(state["answer"])
            if state["answer"] in {302, 307}:
                self.send_header("Location", f"{state['address']}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state["address"] = f"http://127.0.0.1:{server.server_port}/{SECRET}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    record(store, [*STEADY, *SLOW])
    (tmp_path / "pyproject.toml").write_text("[tool.bandwatch]\nstore = 'sqlite:///runs.db'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BANDWATCH_STORE", raising=False)
    monkeypatch.delenv("BANDWATCH_WEBHOOK", raising=False)
    return tmp_path


def test_the_command_posts_once_and_shows_no_address(
    project: Path, bandwatch: Command, hook: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_WEBHOOK", hook["address"])
    answers = [bandwatch("notify"), bandwatch("notify")]
    assert [answer.code for answer in answers] == [0, 0]
    (got,) = hook["got"]
    assert got["groups"][0]["changes"][0]["news"] == "regression"
    assert got["groups"][0]["commit"] == sha(16)
    assert "nothing to send" in answers[1].out
    shown = "".join(answer.out + answer.err for answer in answers)
    assert SECRET not in shown
    assert SECRET.encode() not in (project / "runs.db").read_bytes()


@pytest.mark.parametrize("answer", [302, 307, 404, 429, 500])
def test_a_refusal_is_told_without_the_address_and_tried_again(
    project: Path,
    bandwatch: Command,
    hook: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    answer: int,
) -> None:
    monkeypatch.setenv("BANDWATCH_WEBHOOK", hook["address"])
    hook["answer"] = answer
    failed = bandwatch("notify")
    assert failed.code == 3
    assert str(answer) in failed.err
    assert SECRET not in failed.err + failed.out
    assert len(hook["got"]) == 1  # no redirect was followed
    hook["answer"] = 200
    assert bandwatch("notify").code == 0
    assert len(hook["got"]) == 2


def test_nobody_listening_is_told_without_the_address(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_WEBHOOK", f"http://127.0.0.1:9/{SECRET}")
    answer = bandwatch("notify")
    assert answer.code == 3
    assert SECRET not in answer.err + answer.out
    assert SECRET not in bandwatch("--debug", "notify").err


def test_a_dry_run_shows_the_message_and_notes_nothing(project: Path, bandwatch: Command) -> None:
    for _ in range(2):
        answer = bandwatch("notify", "--dry-run")
        assert answer.code == 0
        assert "1 slower; would be sent" in answer.out
    assert '"news": "regression"' in answer.err


def test_no_address_is_wrong_use(project: Path, bandwatch: Command) -> None:
    answer = bandwatch("notify")
    assert answer.code == 2
    assert "BANDWATCH_WEBHOOK is not set" in answer.err


@pytest.mark.parametrize(
    "address",
    [
        f"http://hooks.example/{SECRET}",
        f"ftp://x/{SECRET}",
        SECRET,
        f"https:///{SECRET}",
        "https://[",
    ],
)
def test_an_unsafe_address_is_refused_unseen(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_from({"BANDWATCH_WEBHOOK": address})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("https://hooks.slack.com/services/T/B/x", Form.SLACK),
        ("https://slack.com.evil.example/x", Form.JSON),
        ("https://notslack.com/x", Form.JSON),
    ],
)
def test_the_form_follows_the_host(address: str, form: Form) -> None:
    assert form_of(address) is form


def test_slack_s_limits_are_kept(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    (group,) = news(store, "main").groups
    many = Telling(
        (type(group)(group.gpu_model, group.previous_sha, group.sha, group.items * 400),) * 9
    )
    body = message(many, Form.SLACK, "https://bench.example")
    assert len(body["blocks"]) <= 50
    assert all(len(block["text"]["text"]) <= 3000 for block in body["blocks"])
    assert "more parts" in json.dumps(body)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_mention_nobody_and_make_no_link_in_slack(store: Store, text: str) -> None:
    record(store, [*STEADY, *SLOW])
    (group,) = news(store, "main").groups
    hostile = type(group)(f"<!channel> {text}", group.previous_sha, group.sha, group.items)
    shown = json.dumps(message(Telling((hostile,)), Form.SLACK), ensure_ascii=False)
    assert "<!channel>" not in shown
    assert "<http" not in shown
    assert "\x1b" not in shown


def test_post_takes_any_success(hook: dict[str, Any]) -> None:
    hook["answer"] = 204
    post(hook["address"], {"a": 1})
    assert hook["got"] == [{"a": 1}]
