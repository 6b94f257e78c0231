"""What people let pass, and until when: waivers, accepted levels, overrides."""

from dataclasses import replace
from datetime import date

from tracker.errors import ExitCode
from tracker.gate import Gate, judge_run
from tracker.model import Correctness, Run, Status, VerdictKind
from tracker.queries import find_run
from tracker.store import Store
from tracker.store.people import (
    Triage,
    TriageState,
    Waiver,
    WaiverAction,
    add_triage,
    add_waiver,
)
from tracker.tests.factory import H200, make_result, sha
from tracker.tests.test_gate import RELU, TODAY, measured, only, record
from tracker.thresholds import Override, Thresholds

WAIVED = Waiver("relu/*", "Ada", "driver bug", "2026-12-31T23:59:59+00:00")
YEAR_END = date(2026, 12, 31)


def losing(store: Store) -> Run:
    """Record a commit and one upon it that is a fifth slower; return the run of the latter."""
    slow = measured(2, factor=1.2)
    record(store, measured(1), slow)
    return slow


def on(store: Store, run: Run, day: date, thresholds: Thresholds | None = None) -> Gate:
    return judge_run(store, find_run(store, run.run_id), thresholds or Thresholds(), today=day)


def test_a_waived_loss_is_told_and_fails_nothing_until_the_waiver_ends(store: Store) -> None:
    slow = losing(store)
    add_waiver(store, WAIVED)
    gate = on(store, slow, YEAR_END)
    assert only(gate).kind is VerdictKind.REGRESSION
    assert gate.code is ExitCode.OK
    assert gate.judged[0].remarks == ("waived by Ada until 2026-12-31: driver bug",)
    assert on(store, slow, date(2027, 1, 1)).code is ExitCode.REGRESSION


def test_a_waiver_is_for_speed_and_excuses_no_wrong_result(store: Store) -> None:
    wrong = make_result(
        RELU,
        [],
        status=Status.INCORRECT,
        correctness=Correctness(checked=True, passed=False),
        reasons={"measurements_s": "wrong"},
    )
    head = measured(2, results=(wrong,))
    record(store, measured(1), head)
    add_waiver(store, WAIVED)
    gate = on(store, head, YEAR_END)
    assert gate.judged[0].outcome == "incorrect"
    assert gate.judged[0].remarks == ()
    assert gate.code is ExitCode.REGRESSION


def test_a_revoked_waiver_and_one_for_others_let_nothing_pass(store: Store) -> None:
    slow = losing(store)
    add_waiver(store, replace(WAIVED, pattern="add/*"))
    add_waiver(store, replace(WAIVED, gpu_model="NVIDIA H100"))
    assert on(store, slow, TODAY).code is ExitCode.REGRESSION
    add_waiver(store, WAIVED)
    add_waiver(store, replace(WAIVED, action=WaiverAction.REVOKED))
    assert on(store, slow, TODAY).code is ExitCode.REGRESSION


def test_an_accepted_level_passes_until_it_ends_or_is_reopened(store: Store) -> None:
    slow = losing(store)
    entry = Triage(
        RELU.fingerprint, H200.gpu_model, sha(2), TriageState.ACCEPTED, "Ada", "exact results"
    )
    add_triage(store, replace(entry, expires_at="2026-12-31T23:59:59+00:00"))
    gate = on(store, slow, YEAR_END)
    assert gate.code is ExitCode.OK
    assert gate.judged[0].remarks == ("accepted by Ada until 2026-12-31: exact results",)
    assert on(store, slow, date(2027, 1, 1)).code is ExitCode.REGRESSION
    add_triage(store, replace(entry, state=TriageState.REOPENED, note="too much"))
    assert on(store, slow, TODAY).code is ExitCode.REGRESSION


def test_removing_an_override_retires_what_hung_on_it(store: Store) -> None:
    slow = losing(store)
    lenient = Override("relu/*", {"minimal_effect": 0.5}, "Ada", "known", date(2026, 12, 31))
    held = on(store, slow, TODAY, Thresholds(overrides=(lenient,)))
    assert held.code is ExitCode.OK
    assert held.judged[0].remarks == (lenient.told(),)
    gone = on(store, slow, TODAY)
    assert only(gone).kind is VerdictKind.REGRESSION
    assert (gone.judged[0].remarks, gone.notes) == ((), ())
    ended = on(store, slow, date(2027, 1, 1), Thresholds(overrides=(lenient,)))
    assert only(ended).kind is VerdictKind.REGRESSION
    assert "ended on 2026-12-31: remove it" in ended.notes[0]
