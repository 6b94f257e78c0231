"""Waivers that travel with a session, so that it is judged alike wherever its folder is."""

from dataclasses import asdict

from tracker.errors import RecordError, StoreError
from tracker.loop.session import Session
from tracker.store import Store
from tracker.store.people import Waiver, WaiverAction, add_waiver, waiver_log

_STEP = "waivers"


def keep_waivers(session: Session, store: Store) -> None:
    """Note the newest waiver on each pattern of a store in the session."""
    newest = {(entry.pattern, entry.gpu_model): entry for entry in waiver_log(store)}
    if newest:
        session.note(_STEP, entries=[asdict(entry) for entry in newest.values()])


def refuse_waivers(session: Session) -> None:
    """Leave out what a session says of waivers, and tell so: nobody waives a change of their own.

    Only what is in memory changes. A pull request's own code ran where its records were written.
    """
    entries = session.notebook.entries
    kept = [entry for entry in entries if entry.get("step") != _STEP]
    if len(kept) < len(entries):
        told = "waivers are not taken from the records of a pull request: a maintainer decides"
        session.notebook.entries = [*kept, {"step": "problem", "text": told}]


def put_waivers(session: Session, store: Store) -> None:
    """Write the waivers that a session keeps into a store.

    Raises RecordError for what is no waiver: the session may come from elsewhere.
    """
    for facts in session.facts(_STEP)[-1:]:
        try:
            waivers = [
                Waiver(**entry | {"action": WaiverAction(entry["action"])})
                for entry in facts["entries"]
            ]
            for waiver in waivers:
                add_waiver(store, waiver)
        except (TypeError, KeyError, ValueError, AttributeError, StoreError) as error:
            raise RecordError(
                f"cannot read {session.folder}: its waivers are none: {error}"
            ) from None
