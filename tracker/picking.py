"""For each case of a run: its base among earlier runs, what repeats it, and what came before."""

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.baseline import Candidate, Choice, Wanted, choose
from tracker.lineage import fork_of
from tracker.past import Seen
from tracker.queries import RunInfo
from tracker.queries import ancestors as known_ancestors
from tracker.sides import Earlier
from tracker.store import Store
from tracker.units import counted


def line_before(
    store: Store, run: RunInfo, ancestors: Sequence[str] | None
) -> Sequence[str] | None:
    """Return the commits that may stand before the run, newest first."""
    if run.sha is None:
        return ancestors
    line = tuple(ancestors or ())
    if ancestors is None or run.checkout.shallow:
        # The store may know what a shallow clone or another repository does not.
        fork = fork_of(run.checkout)
        known = (*([fork] if fork else []), *known_ancestors(store, fork or run.sha))
        line = tuple(dict.fromkeys((*line, *known)))
    return (run.sha, *line) if run.checkout.dirty else line


@dataclass(frozen=True, slots=True)
class Picked:
    """For one result: its base among earlier results, what repeats the base, what repeats it."""

    choice: Choice
    base: Seen | None = None
    base_repeats: tuple[Seen, ...] = ()
    repeats: tuple[Seen, ...] = ()

    @property
    def rule(self) -> str:
        """What the base is, in words: the rule that picked it, and how many runs repeat it."""
        more = len(self.base_repeats)
        repeated = f" and {counted(more, 'more run')} of it" if more else ""
        return f"{self.choice.rule}{repeated}"

    @property
    def all(self) -> tuple[Seen, ...]:
        """Everything whose measurements count."""
        return (*((self.base,) if self.base else ()), *self.base_repeats, *self.repeats)

    def same_commit(self, run: RunInfo) -> bool:
        """Return whether the base is an earlier run of the run's own commit."""
        return self.base is not None and self.base.info.sha == run.sha


class Picker:
    """Finds bases; most cases of a run have the same earlier runs, so one choice serves them."""

    def __init__(self, run: RunInfo, line: Sequence[str], others: Sequence[RunInfo]) -> None:
        self._run, self._others = run, others
        self._choices: dict[tuple[object, ...], Choice] = {}
        self._wanted = Wanted(
            sha=f"{run.sha} with changes" if run.checkout.dirty and run.sha else run.sha,
            ancestors=line,
            gpu_model=run.gpu_model,
            environment=run.environment_key,
            device=run.device.uuid,
            fork=_merge_base(run, line),
            below=run.sha if run.checkout.dirty else None,
        )

    def pick(self, past: Sequence[Seen]) -> Picked:
        """Return the base among the earlier results of one case, and what counts as repeats."""
        key = tuple((seen.info.number, seen.status, seen.shared) for seen in past)
        if key not in self._choices:
            known = [_candidate(seen.info, seen) for seen in past]
            known += [_candidate(info, None) for info in self._others]
            self._choices[key] = choose(known, self._wanted)
        choice, run = self._choices[key], self._run
        base = next((seen for seen in past if seen.info.run_id == choice.run_id), None)
        if base is None:
            return Picked(choice)
        same = base.info.sha == run.sha or run.checkout.dirty
        return Picked(choice, base, _repeats(past, base.info), () if same else _repeats(past, run))


def _merge_base(run: RunInfo, line: Sequence[str]) -> str | None:
    """Return the commit that a line starts with where it leaves out what a branch added to it."""
    commit = run.checkout.commit
    first = next((sha for sha in line if sha != run.sha), None)
    if commit is None or first is None or first in commit.parents:
        return None
    return first if commit.parents or first == fork_of(run.checkout) else None


def _candidate(info: RunInfo, seen: Seen | None) -> Candidate:
    return Candidate(
        run_id=info.run_id,
        sha=info.sha,
        finished=f"{info.started:020.6f}",
        gpu_model=info.gpu_model,
        environment=info.environment_key,
        device=info.device.uuid,
        dirty=info.checkout.dirty,
        throttled=seen is not None and seen.throttled,
        shared=seen is not None and seen.shared,
        incorrect=seen is not None and seen.incorrect,
    )


def _repeats(past: Sequence[Seen], run: RunInfo) -> tuple[Seen, ...]:
    """Return usable results of the run's commit on its device, from other processes."""
    return tuple(
        seen
        for seen in past
        if seen.info.number != run.number
        and seen.info.sha == run.sha
        and seen.info.device.uuid == run.device.uuid
        and seen.usable
    )


def history_of(past: Sequence[Seen], run: RunInfo, picked: Picked) -> tuple[Earlier, ...]:
    """Return the usable runs before the base on the run's device, the furthest ancestor first."""
    return tuple(_before(past, run, picked).get(run.device.uuid, ()))


def elsewhere(
    past: Sequence[Seen], run: RunInfo, picked: Picked
) -> tuple[tuple[Earlier, ...], ...]:
    """Return the like of each other device, where base and run are of one device."""
    if picked.base is None or picked.base.info.device.uuid != run.device.uuid:
        return ()
    found = _before(past, run, picked)
    return tuple(tuple(runs) for device, runs in found.items() if device != run.device.uuid)


def _before(past: Sequence[Seen], run: RunInfo, picked: Picked) -> dict[str, list[Earlier]]:
    """Return the usable runs before the base by their device, the furthest ancestor first."""
    counted = {seen.info.number for seen in picked.all}
    found: dict[str, list[Earlier]] = {}
    for seen in reversed(past):  # the nearest ancestor comes first there
        fresh = seen.info.number not in counted
        if seen.usable and fresh and (seen.info.sha != run.sha or picked.same_commit(run)):
            found.setdefault(seen.info.device.uuid, []).append(seen.glance)
    return found
