"""A session's records judged: the same answer wherever its folder is.

Everything that the verdicts rest on is in the folder, so the records go into a store that lives as
long as the judging and the gate works on that.
"""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from tracker.errors import ExitCode
from tracker.gate import judge_run
from tracker.loop.ab import Referee
from tracker.loop.session import Session
from tracker.loop.waived import put_waivers
from tracker.model import Checkout, Commit, Run, fingerprint
from tracker.past import Past
from tracker.queries import RunInfo, find_run
from tracker.reasons import ReasonCode
from tracker.report.judged import Judged
from tracker.sides import Earlier, environment_difference
from tracker.store import Store
from tracker.thresholds import Thresholds
from tracker.verdict import exit_code


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on all cases of a session; `runs` are those of the head, as measured first."""

    runs: tuple[RunInfo, ...] = ()
    measured: tuple[Run, ...] = ()
    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    in_turns: int = 0

    @property
    def code(self) -> ExitCode:
        """The exit code that the verdicts lead to; undecided where nothing was measured."""
        return exit_code(item.verdict for item in self.judged)

    @property
    def broken(self) -> bool:
        """Some result is wrong, or its test failed: it has no time to judge."""
        return any(item.outcome in {"incorrect", "error"} for item in self.judged)

    @property
    def hesitant(self) -> bool:
        """Everything was measured, and undecided is the worst that was found."""
        undecided = bool(self.judged) and self.code is ExitCode.UNDECIDED and not self.broken
        return undecided and not any(map(_missed, self.judged))

    def without_vanished(self) -> "Judgement":
        """Return the same with every case that vanished let pass, which its verdict tells."""
        return replace(self, judged=tuple(map(_let_pass, self.judged)))


def _let_pass(item: Judged) -> Judged:
    if not _missed(item):
        return item
    told = "let pass by --allow-vanished: said to be removed on purpose"
    verdict = replace(item.verdict, waived=told, what_would_decide="")
    return replace(item, verdict=verdict, remarks=(*item.remarks, told))


def _missed(item: Judged) -> bool:
    return item.verdict.has(ReasonCode.VANISHED) and not item.verdict.waived


def judge_session(session: Session, thresholds: Thresholds, today: date) -> Judgement:
    """Return the verdicts on a session's cases.

    A case that was measured again is judged by all its processes, one that was measured in turns
    with the base by those alone. Raises RecordError for records that cannot be read.
    """
    heads, repeats = session.runs("head"), session.runs("repeat")
    if not heads:
        return Judgement()
    line = session.shas("ancestors")
    bases = session.runs("base")
    # A commit whose ancestors were measured is judged against those, with all its processes.
    before = {_sha(run.checkout) for run in bases if run.checkout.commit}
    before = before if before.isdisjoint(line) else set()
    with scratch_store() as store:
        for run in bases:
            store.record(run)
        put_waivers(session, store)
        found, infos, notes = _judge(store, heads, repeats, line, before, thresholds, today)
    turns = _in_turns(session, thresholds, today)
    found |= turns
    return Judgement(infos, heads, tuple(found.values()), notes, len(turns))


@contextmanager
def scratch_store() -> Iterator[Store]:
    """Give an empty store that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(f"sqlite:///{Path(folder) / 'scratch.db'}") as store,
    ):
        yield store


Found = dict[tuple[str, str], Judged]


def _judge(
    store: Store,
    heads: Sequence[Run],
    repeats: Sequence[Run],
    line: Sequence[str],
    before: Collection[str],
    thresholds: Thresholds,
    today: date,
) -> tuple[Found, tuple[RunInfo, ...], tuple[str, ...]]:
    found: Found = {}
    infos, notes = [], []
    for run in (*heads, *repeats):
        again = _sha(run.checkout) in before
        whole, ancestors = as_commit(run, line, again=again)
        store.record(whole)
        info = find_run(store, whole.run_id)
        gate = judge_run(
            store, info, thresholds, today=today, ancestors=ancestors, checkout=run.checkout
        )
        for item in gate.judged:
            told = _told_again(item) if again else item
            found[run.device.uuid, item.verdict.case.fingerprint] = told
        if run in heads:
            infos.append(replace(info, checkout=run.checkout))
            notes += [note for note in gate.notes if note not in notes]
    return found, tuple(infos), tuple(notes)


def as_commit(run: Run, line: Sequence[str], *, again: bool = False) -> tuple[Run, Sequence[str]]:
    """Return the run as one of a commit, and the commits before it.

    What was changed on top of a commit is a commit of its own here: its processes belong together
    and are judged against the commit below. So is a commit that was measured before (`again`): this
    session's processes are judged against the earlier ones.
    """
    checkout = run.checkout
    if not (checkout.dirty or again) or checkout.commit is None:
        return run, line
    below = checkout.commit
    digest = fingerprint([below.sha, checkout.tree])
    made = Commit((digest * 3)[:40], (below.sha,), None, below.author_time, below.commit_time)
    clean = replace(checkout, commit=made, dirty=False)
    return replace(run, checkout=clean), (below.sha, *line)


_ANCESTOR, _ITSELF = "newest clean run of the parent commit,", "newest earlier run of this commit,"


def _told_again(item: Judged) -> Judged:
    """Return the verdict with the rule as it is: the commit below is the very commit."""
    rule = item.verdict.baseline_rule.replace(_ANCESTOR, _ITSELF)
    return replace(item, verdict=replace(item.verdict, baseline_rule=rule))


def earlier_runs(session: Session, device: str) -> dict[str, tuple[Earlier, ...]]:
    """Return what earlier runs on a device say of each case, oldest first, by fingerprint.

    Runs of the very commit are none: the change that is asked about would pass for noise. Nor is
    one of another environment.
    """
    heads = session.runs("head")
    own = {_sha(run.checkout) for run in heads}
    bases = {
        run.run_id: run
        for run in session.runs("base")
        if run.device.uuid == device
        and _sha(run.checkout) not in own
        and any(not environment_difference(run.environment, head.environment) for head in heads)
    }
    with scratch_store() as store:
        for run in bases.values():
            store.record(run)
        # The nearest ancestor comes first in the session.
        past = Past(store, [find_run(store, name) for name in reversed(bases)])
    cases = {result.case.fingerprint for run in bases.values() for result in run.results}
    return {
        key: tuple(seen.glance for seen in past.of(key) if seen.usable) for key in sorted(cases)
    }


def _in_turns(session: Session, thresholds: Thresholds, today: date) -> Found:
    base, head = session.runs("turn-base"), session.runs("turn-head")
    facts = session.facts("kept turn-head")
    if not base or not head or not facts:
        return {}
    looks = facts[-1].get("looks")
    device = head[0].device.uuid
    referee = Referee(
        _sha(base[0].checkout),
        looks if isinstance(looks, int) and looks > 0 else 1,
        thresholds,
        today,
        earlier=earlier_runs(session, device),
        head=_sha(head[0].checkout),
    )
    judged: Iterable[Judged] = referee.judge_runs(base, head)
    return {(device, item.verdict.case.fingerprint): item for item in judged}


def _sha(checkout: Checkout) -> str:
    return checkout.commit.sha if checkout.commit else "no commit"
