"""The team told of change points: each once, grouped by the commits that they lie between.

What was told stands in the store's log of triage, so that another machine knows it too. The entry
is written before the message leaves: a crash in between costs a message, never sends one twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import uuid4

from tracker.errors import ExitCode, TrackerError
from tracker.loop.changes import Change, survey
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_log

AUTHOR = "bandwatch notify"
# A change that was told has worsened when it is larger by this factor.
_WORSE = 1.5
_SENDING, _SENT, _FAILED = "sending", "sent", "not sent"


class UncertainError(TrackerError):
    """A message that may or may not have arrived."""

    exit_code = ExitCode.UNDECIDED


class News(StrEnum):
    """What is told of a change point."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    WORSENED = "worsened"
    RECOVERED = "recovered"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to tell."""

    news: News
    change: Change


@dataclass(frozen=True, slots=True)
class Group:
    """What is told in one message part: changes on a GPU model between the same two commits."""

    gpu_model: str
    previous_sha: str
    sha: str
    items: tuple[Item, ...]

    @property
    def key(self) -> str:
        """Stable name, by which a receiver can recognise a message that it has."""
        return f"{self.gpu_model}/{self.previous_sha[:12]}..{self.sha[:12]}"


@dataclass(frozen=True, slots=True)
class Telling:
    """What there is to tell, and what may or may not have been sent before a crash."""

    groups: tuple[Group, ...]
    unsure: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """Every item of every group."""
        return tuple(item for group in self.groups for item in group.items)


def news(store: Store, branch: str, gpu_model: str | None = None) -> Telling:
    """Return what has not been told yet of the change points on a branch."""
    ledger = _Ledger.read(store)
    now = survey(store, branch, gpu_model)
    found = []
    for change in now.changes:
        kind = ledger.news(change)
        if kind is not None:
            found.append(Item(kind, change))
    found += [Item(News.RETRACTED, change) for change in now.gone(ledger.entries)]
    return Telling(_grouped(found), ledger.unsure())


def tell(store: Store, telling: Telling, send: Callable[[Telling], None]) -> None:
    """Send what there is to tell; note before that it is being sent, and after that it was.

    What another call has begun to send meanwhile is left to it. An exception of `send` means that
    it certainly did not arrive: that is noted, so that the next call tries again, and the exception
    goes on. Only after an UncertainError nobody tries again, as after a crash.
    """
    ledger = _Ledger.read(store)
    wanted = [item for item in telling.items if ledger.wants(item)]
    mark = f"{_SENDING} {uuid4().hex[:12]}"
    for item in wanted:
        ledger.note(store, item, mark)
    # Entries have an order that every reader sees alike: who noted an item first sends it.
    mine = [item for item in wanted if _first_mark(store, item) == mark]
    if not mine:
        return
    try:
        send(replace(telling, groups=_grouped(mine)))
    except UncertainError:
        raise
    except Exception:
        for item in mine:
            ledger.note(store, item, _FAILED)
        raise
    for item in mine:
        ledger.note(store, item, _SENT)


def _first_mark(store: Store, item: Item) -> str | None:
    """Return what the first of the calls that are sending an item noted."""
    change = item.change
    key = (change.case.fingerprint, change.gpu_model, change.sha)
    first = None
    for entry in triage_log(store):
        kind, _, what = entry.note.partition(": ")
        ours = entry.author == AUTHOR and kind == item.news.value
        if ours and (entry.case_fingerprint, entry.gpu_model, entry.commit_sha) == key:
            sending = what.startswith(_SENDING)
            first = (first or what) if sending else None
    return first


def _grouped(items: Sequence[Item]) -> tuple[Group, ...]:
    groups: dict[tuple[str, str, str], list[Item]] = {}
    for item in items:
        change = item.change
        groups.setdefault((change.gpu_model, change.previous_sha, change.sha), []).append(item)
    ordered = sorted(groups.items(), key=lambda pair: pair[1][0].change.started)
    return tuple(
        Group(*key, tuple(sorted(members, key=lambda item: item.change.effect)))
        for key, members in ordered
    )


def _stands(kinds: Mapping[News, tuple[str, float]]) -> bool:
    """Return whether something was told of a change that was not taken back since."""
    return any(kind is not News.RETRACTED and what != _FAILED for kind, (what, _) in kinds.items())


@dataclass(slots=True)
class _Ledger:
    """The log of triage as far as it is ours, and people's newest state of each change."""

    told: dict[tuple[str, str, str], dict[News, tuple[str, float]]]
    entries: tuple[Triage, ...]
    states: Mapping[tuple[str, str, str], Triage]

    @classmethod
    def read(cls, store: Store) -> "_Ledger":
        """Return the ledger of a store; a later entry on the same news replaces an earlier one.

        With a retraction all that was told before is over: what comes back is news again. `entries`
        are the newest of each change that was told and not retracted.
        """
        told: dict[tuple[str, str, str], dict[News, tuple[str, float]]] = {}
        states = {}
        for entry in triage_log(store):
            key = (entry.case_fingerprint, entry.gpu_model, entry.commit_sha)
            states[key] = entry
            kind, _, what = entry.note.partition(": ")
            if entry.author == AUTHOR and kind in set(News):
                if News(kind) is News.RETRACTED and what != _FAILED:
                    told[key] = {}
                told.setdefault(key, {})[News(kind)] = (what, entry.effect or 0.0)
        open_ = tuple(states[key] for key, kinds in told.items() if _stands(kinds))
        return cls(told, open_, states)

    def news(self, change: Change) -> News | None:
        """Return what is to be told of a change point now, None when all was told."""
        known = self._known(change)
        usual = News.REGRESSION if change.effect < 0 else News.IMPROVEMENT
        if usual not in known:
            return usual
        if change.recovered and News.RECOVERED not in known:
            return News.RECOVERED
        worse = change.effect < 0 and abs(change.effect) > _WORSE * abs(known[usual][1])
        if worse and not change.recovered and News.WORSENED not in known:
            return News.WORSENED
        return None

    def wants(self, item: Item) -> bool:
        """Return whether an item is still to be told."""
        known = self._known(item.change)
        return item.news not in known

    def unsure(self) -> tuple[str, ...]:
        """Return the changes of which nobody knows whether their message arrived."""
        return tuple(
            f"{kind.value} of {key[0]} on {key[1]} at {key[2][:12]}"
            for key, kinds in self.told.items()
            for kind, (what, _) in kinds.items()
            if what.startswith(_SENDING)
        )

    def note(self, store: Store, item: Item, what: str) -> None:
        """Append an entry; people's own state of the change stays what it is."""
        change = item.change
        key = (change.case.fingerprint, change.gpu_model, change.sha)
        before = self.states.get(key)
        entry = Triage(
            case_fingerprint=change.case.fingerprint,
            gpu_model=change.gpu_model,
            commit_sha=change.sha,
            state=before.state if before else TriageState.NEW,
            author=AUTHOR,
            note=f"{item.news.value}: {what}",
            previous_sha=change.previous_sha,
            effect=change.effect,
            expires_at=before.expires_at if before else None,
        )
        add_triage(store, entry)
        self.states = {**self.states, key: entry}

    def _known(self, change: Change) -> dict[News, tuple[str, float]]:
        """Return what was told of a change, at its commit or one nearby; what failed was not."""
        found: dict[News, tuple[str, float]] = {}
        for sha in (*change.nearby, change.sha):
            kinds = self.told.get((change.case.fingerprint, change.gpu_model, sha), {})
            found |= {kind: told for kind, told in kinds.items() if told[0] != _FAILED}
        return found
