"""What people decide is kept in order, and can be neither changed nor lost."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from tracker.errors import StoreError
from tracker.store import Store
from tracker.store.people import (
    Triage,
    TriageState,
    Waiver,
    WaiverAction,
    active_waivers,
    add_triage,
    add_waiver,
    triage_log,
    triage_states,
    waiver_log,
)
from tracker.tests.factory import sha

ENTRY = Triage(
    "0123456789abcdef",
    "NVIDIA H200",
    sha(2),
    TriageState.NEW,
    "Ada",
    "seen",
    sha(1),
    -0.04,
    at="2026-03-01T00:00:00+00:00",
)
WAIVER = Waiver(
    "relu/*", "Ada", "driver bug", "2026-04-01T00:00:00+00:00", at="2026-03-01T00:00:00+00:00"
)
MARCH, APRIL = "2026-03-15T00:00:00Z", "2026-04-01T00:00:00Z"


def test_the_newest_entry_is_the_state_and_all_are_kept(store: Store) -> None:
    later = replace(ENTRY, state=TriageState.ACCEPTED, note="slower on purpose")
    other = replace(ENTRY, commit_sha=sha(3))
    for entry in (ENTRY, other, later):
        add_triage(store, entry)
    assert triage_log(store) == (ENTRY, other, later)
    assert triage_states(store) == {
        (ENTRY.case_fingerprint, "NVIDIA H200", sha(2)): later,
        (ENTRY.case_fingerprint, "NVIDIA H200", sha(3)): other,
    }
    assert store.revision() == 3


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM triage",
        "UPDATE triage SET author = 'Eve'",
        "DELETE FROM waivers",
        "UPDATE waivers SET note = ''",
    ],
)
def test_the_database_itself_keeps_the_logs(store: Store, statement: str) -> None:
    add_triage(store, ENTRY)
    add_waiver(store, WAIVER)
    with pytest.raises(StoreError, match="append-only"), store.writing() as (connection, _):
        connection.execute(text(statement))
    assert triage_log(store) == (ENTRY,)
    assert waiver_log(store) == (WAIVER,)


def test_a_waiver_ends_by_date_or_by_being_revoked(store: Store) -> None:
    add_waiver(store, WAIVER)
    assert active_waivers(store, MARCH) == (WAIVER,)
    assert active_waivers(store, APRIL) == ()
    add_waiver(store, replace(WAIVER, action=WaiverAction.REVOKED, expires_at=None))
    assert active_waivers(store, MARCH) == ()


def test_a_waiver_covers_labels_by_pattern_and_model() -> None:
    assert WAIVER.covers("relu/torch float32 [4] cold", "NVIDIA H200")
    assert not WAIVER.covers("add/torch float32 [4] cold", "NVIDIA H200")
    assert not replace(WAIVER, gpu_model="NVIDIA A100").covers("relu/torch", "NVIDIA H200")


def test_an_entry_needs_an_author_a_real_time_and_a_waiver_an_end(store: Store) -> None:
    with pytest.raises(StoreError, match="no author"):
        add_triage(store, replace(ENTRY, author=" "))
    with pytest.raises(StoreError, match="no time with a zone"):
        add_triage(store, replace(ENTRY, expires_at="2026-03-01T00:00:00"))
    with pytest.raises(StoreError, match="never expire"):
        add_waiver(store, replace(WAIVER, expires_at=None))
    assert store.revision() == 0
