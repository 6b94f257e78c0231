"""What people say of changes: triage of change points, and waivers. Both logs only grow."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from math import isfinite

from sqlalchemy import insert, select

from tracker.errors import StoreError
from tracker.store.rows import next_id, now
from tracker.store.schema import TriageRow, WaiverRow
from tracker.store.store import Store


class TriageState(StrEnum):
    """What people have decided on a change point."""

    NEW = "new"
    ACKNOWLEDGED = "acknowledged"
    ACCEPTED = "accepted"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True)
class Triage:
    """One entry on a change point: a case (by fingerprint) on a GPU model, from `commit_sha` on.

    `previous_sha` is the last commit before the change, `effect` its relative size; `at` and
    `expires_at` are ISO 8601 with zone. An entry without `at` gets the time of writing.
    """

    case_fingerprint: str
    gpu_model: str
    commit_sha: str
    state: TriageState
    author: str
    note: str = ""
    previous_sha: str | None = None
    effect: float | None = None
    expires_at: str | None = None
    at: str | None = None


class WaiverAction(StrEnum):
    """Whether a waiver begins or ends."""

    GRANTED = "granted"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One entry on cases that may not fail the gate: those whose label fits a shell pattern.

    Without a GPU model it holds on each. `expires_at` is ISO 8601 with zone.
    """

    pattern: str
    author: str
    note: str
    expires_at: str | None
    gpu_model: str | None = None
    action: WaiverAction = WaiverAction.GRANTED
    at: str | None = None

    def covers(self, label: str, gpu_model: str) -> bool:
        """Return whether a case on a GPU model is meant."""
        # Labels have their shape in brackets, which are no set of characters here.
        pattern = self.pattern.replace("[", "[[]")
        return fnmatchcase(label, pattern) and self.gpu_model in {None, gpu_model}


def add_triage(store: Store, entry: Triage) -> None:
    """Append an entry to the log. Raises StoreError for one without an author or a real time."""
    check_entry(store, entry)
    with store.writing("note a triage") as (connection, _):
        values = {f.name: getattr(entry, f.name) for f in fields(entry)}
        values |= {"id": next_id(connection, TriageRow), "at": entry.at or now()}
        connection.execute(insert(TriageRow), {**values, "state": entry.state.value})


def add_waiver(store: Store, entry: Waiver) -> None:
    """Append an entry to the log. Raises StoreError for a grant that never expires."""
    check_entry(store, entry)
    with store.writing("note a waiver") as (connection, _):
        values = {f.name: getattr(entry, f.name) for f in fields(entry)}
        values |= {"id": next_id(connection, WaiverRow), "at": entry.at or now()}
        connection.execute(insert(WaiverRow), {**values, "action": entry.action.value})


def check_entry(store: Store, entry: Triage | Waiver) -> None:
    """Raise StoreError for an entry that the logs may not hold."""
    where = f"cannot write to {store.name}"
    for name, value in ((f.name, getattr(entry, f.name)) for f in fields(entry)):
        longest = _LONGEST.get(name, _TEXT)
        if name == "effect":
            if value is not None and not (isinstance(value, float) and isfinite(value)):
                raise StoreError(f"{where}: effect is {value!a}; expected a finite number")
        elif value is None and name in _MAY_LACK:
            continue
        elif not isinstance(value, str) or len(value) > longest or "\x00" in value:
            raise StoreError(
                f"{where}: {name} is {ascii(value)[:60]}; expected a text of at most {longest} "
                "characters"
            )
    if not entry.author.strip():
        raise StoreError(f"{where}: no author given; say who decided")
    for time in (entry.at, entry.expires_at):
        if time is not None and not _is_zoned(time):
            raise StoreError(f"{where}: {time!a} is no time with a zone")
    if isinstance(entry, Waiver) and entry.expires_at is None and entry.action == "granted":
        raise StoreError(
            f"cannot grant a waiver for {entry.pattern!a}: it would never expire; expected a date"
        )


_TEXT = 10_000
_LONGEST = {
    "case_fingerprint": 16,
    "gpu_model": 200,
    "commit_sha": 64,
    "previous_sha": 64,
    "at": 40,
    "expires_at": 40,
}
_MAY_LACK = frozenset({"gpu_model", "previous_sha", "at", "expires_at"})


def _is_zoned(time: str) -> bool:
    try:
        return datetime.fromisoformat(time).tzinfo is not None
    except ValueError:
        return False


def triage_log(store: Store) -> tuple[Triage, ...]:
    """Return every entry, the oldest first."""
    with store.reading("read the triage log") as connection:
        rows = connection.execute(select(TriageRow.__table__).order_by(TriageRow.id)).mappings()
        return tuple(
            Triage(
                **{
                    **{f.name: row[f.name] for f in fields(Triage)},
                    "state": TriageState(row["state"]),
                }
            )
            for row in rows
        )


def triage_states(
    store: Store, ignoring: Collection[str] = ()
) -> dict[tuple[str, str, str], Triage]:
    """Return the newest entry of each change point, by case fingerprint, GPU model and commit.

    Entries of the authors in `ignoring` do not count: programs that note what they did.
    """
    return {
        (e.case_fingerprint, e.gpu_model, e.commit_sha): e
        for e in triage_log(store)
        if e.author not in ignoring
    }


def waiver_log(store: Store) -> tuple[Waiver, ...]:
    """Return every entry, the oldest first."""
    with store.reading("read the waivers") as connection:
        rows = connection.execute(select(WaiverRow.__table__).order_by(WaiverRow.id)).mappings()
        return tuple(
            Waiver(
                **{
                    **{f.name: row[f.name] for f in fields(Waiver)},
                    "action": WaiverAction(row["action"]),
                }
            )
            for row in rows
        )


def active_waivers(store: Store, at: str) -> tuple[Waiver, ...]:
    """Return the waivers that are granted, not revoked since and not expired at a time."""
    moment = datetime.fromisoformat(at)
    newest = {(entry.pattern, entry.gpu_model): entry for entry in waiver_log(store)}
    return tuple(
        entry
        for entry in newest.values()
        if entry.action is WaiverAction.GRANTED
        and (entry.expires_at is None or datetime.fromisoformat(entry.expires_at) > moment)
    )
