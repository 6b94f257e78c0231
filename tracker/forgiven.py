"""What people have said may not fail the gate: waivers, and accepted changes. Both end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

from tracker.model import Case
from tracker.store import Store
from tracker.store.people import (
    Triage,
    TriageState,
    Waiver,
    active_waivers,
    triage_states,
)
from tracker.verdict import Verdict

Key = tuple[str, str, str]
"""Case fingerprint, GPU model and the first commit of a change."""


@dataclass(frozen=True, slots=True)
class Forgiven:
    """The waivers and acceptances that hold on a day."""

    waivers: tuple[Waiver, ...] = ()
    accepted: Mapping[Key, Triage] | None = None

    @classmethod
    def on(cls, store: Store, today: date) -> "Forgiven":
        """Return what holds in a store on a day. Raises StoreError."""
        moment = datetime.combine(today, time(), UTC)
        accepted = {
            key: entry
            for key, entry in triage_states(store).items()
            if entry.state is TriageState.ACCEPTED and not has_ended(entry, moment)
        }
        return cls(active_waivers(store, moment.isoformat()), accepted)

    def apply(self, verdict: Verdict, gpu_model: str, sha: str | None) -> Verdict:
        """Return the verdict on a run of `sha`, with who lets it pass and why, if anybody does.

        What is wrong is never let pass: a waiver is for speed.
        """
        if verdict.wrong:
            return verdict
        said = self._said(verdict.case, gpu_model, (verdict.since, sha))
        return replace(verdict, waived=said) if said else verdict

    def _said(self, case: Case, gpu_model: str, shas: Sequence[str | None]) -> str:
        for waiver in self.waivers:
            if waiver.covers(case.label, gpu_model):
                return _told("waived", waiver)
        for sha in shas:
            entry = (self.accepted or {}).get((case.fingerprint, gpu_model, sha or ""))
            if entry is not None:
                return _told("accepted", entry)
        return ""


def has_ended(entry: Triage | Waiver, at: datetime) -> bool:
    """Return whether an entry's last moment is over."""
    return entry.expires_at is not None and datetime.fromisoformat(entry.expires_at) <= at


def _told(what: str, entry: Triage | Waiver) -> str:
    until = f" until {entry.expires_at[:10]}" if entry.expires_at else ""
    return f"{what} by {entry.author}{until}: {entry.note}"
