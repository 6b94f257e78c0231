"""The change points of every series on a branch, as the store has them now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from tracker.levels import Course, Floats, Found, lasting, steps, trusted
from tracker.model import Case
from tracker.occasion import newest
from tracker.queries import Series, SeriesInfo, gpu_models, series, series_list
from tracker.stats.change_point import history
from tracker.store import Store
from tracker.store.people import Triage

# The place of a change may move by so many commits as runs are added.
NEAR = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One change of level: from `previous_sha`, the last commit before, to `sha`, the first after.

    `effect` is the relative change of bandwidth, `before`, `after` and `newest` (the present one)
    are levels in bytes per second. `nearby` are the commits around it, to which its place may move
    as runs are added.
    """

    case: Case
    gpu_model: str
    sha: str
    previous_sha: str
    effect: float
    p_value: float
    before: float
    after: float
    newest: float
    started: float
    nearby: tuple[str, ...] = ()

    @property
    def recovered(self) -> bool:
        """Whether a loss is over: the present level has made up for more than half of it."""
        return self.effect < 0 and not lasting(self.before, self.after, self.newest)


@dataclass(frozen=True, slots=True)
class Line:
    """One series as commits: what each reached, in commit order."""

    case: Case
    gpu_model: str
    shas: tuple[str, ...]
    started: tuple[float, ...]
    course: Course


@dataclass(frozen=True, slots=True)
class Survey:
    """All series of a branch with the change points that they show now."""

    lines: tuple[Line, ...]
    changes: tuple[Change, ...]

    def gone(self, told: Iterable[Triage]) -> tuple[Change, ...]:
        """Return the changes that the log tells of and that are no longer there.

        Their commits are still in their series: more runs have shown that nothing changed. What is
        on other branches or was pruned is not spoken of.
        """
        here = {(line.case.fingerprint, line.gpu_model): line for line in self.lines}
        still = {
            (change.case.fingerprint, change.gpu_model, sha)
            for change in self.changes
            for sha in (change.sha, *change.nearby)
        }
        entries = {(e.case_fingerprint, e.gpu_model, e.commit_sha): e for e in told}
        return tuple(
            _gone(here[key[:2]], entry)
            for key, entry in entries.items()
            if key not in still and key[:2] in here and key[2] in here[key[:2]].shas
        )


def _gone(line: Line, entry: Triage) -> Change:
    level = float(np.median(line.course.bandwidth))
    place = line.shas.index(entry.commit_sha)
    return Change(
        case=line.case,
        gpu_model=line.gpu_model,
        sha=entry.commit_sha,
        previous_sha=entry.previous_sha or line.shas[max(0, place - 1)],
        effect=entry.effect or 0.0,
        p_value=1.0,
        before=level,
        after=level,
        newest=level,
        started=line.started[place],
    )


def survey(store: Store, branch: str, gpu_model: str | None = None) -> Survey:
    """Return all series on a branch, in the newest environment of each, and their changes."""
    found = tuple(lines(store, branch, gpu_model))
    return Survey(found, tuple(change for line in found for change in _changes(line)))


def changes(store: Store, branch: str, gpu_model: str | None = None) -> tuple[Change, ...]:
    """Return the change points of all series on a branch, in the newest environment of each."""
    return survey(store, branch, gpu_model).changes


def lines(store: Store, branch: str, gpu_model: str | None = None) -> Iterator[Line]:
    """Yield every series of a branch, in its newest environment, with its trusted results.

    That is the environment of the newest run of the suite, for a case that it has not that of the
    newest result: a study in another one must not end every line.
    """
    of_suite = _environments(store, branch)
    chosen: dict[tuple[str, str], SeriesInfo] = {}

    def rank(info: SeriesInfo) -> tuple[bool, float]:
        return info.environment_key == of_suite.get(info.gpu_model), info.last_started

    for info in series_list(store, gpu_model=gpu_model):
        known = chosen.setdefault((info.case_key, info.gpu_model), info)
        chosen[info.case_key, info.gpu_model] = max(known, info, key=rank)
    for (key, model), info in chosen.items():
        found = series(store, key, model, environment_key=info.environment_key, branch=branch)
        counts = trusted(found.status, found.shared)
        kept = [i for i in range(len(found)) if counts[i] and _usable(found, i)]
        if kept:
            yield _line(found, kept)


def _environments(store: Store, branch: str) -> dict[str, str]:
    """Return the environment of the newest run of the suite on a branch, by GPU model."""
    found = {
        model.name: newest(store, gpu_model=model.name, branch=branch, dirty=False)
        for model in gpu_models(store)
    }
    return {name: meant.run.environment_key for name, meant in found.items() if meant}


def _usable(found: Series, i: int) -> bool:
    return bool(found.sha[i] and isfinite(found.bandwidth[i]))


def _line(found: Series, kept: Sequence[int]) -> Line:
    groups: dict[str, list[int]] = {}
    for i in kept:
        groups.setdefault(str(found.sha[i]), []).append(i)
    # A commit may have been measured on several boards; then they all count as one more.
    boards = [",".join(sorted({str(found.device[i]) for i in group})) for group in groups.values()]
    course = Course(
        bandwidth=_medians(found.bandwidth, groups.values()),
        copy_fraction=_medians(found.copy_fraction, groups.values()),
        environment=[""] * len(groups),
        device=boards,
        trusted=np.ones(len(groups), dtype=np.bool_),
    )
    started = tuple(float(found.started[group[0]]) for group in groups.values())
    return Line(found.case, found.gpu_model, tuple(groups), started, course)


def _medians(values: Floats, groups: Iterable[Sequence[int]]) -> Floats:
    return np.array([np.median(values[list(group)]) for group in groups], dtype=np.float64)


def _points(values: Sequence[float]) -> Sequence[Found]:
    """Return the change points of values; a steady drift is none."""
    return history(values).changes


def _changes(line: Line) -> Iterator[Change]:
    found = steps(line.course, detect=_points)
    newest = found[-1].after if found else 0.0
    for step in found:
        yield Change(
            case=line.case,
            gpu_model=line.gpu_model,
            sha=line.shas[step.index],
            previous_sha=line.shas[step.previous],
            effect=step.effect,
            p_value=step.p_value,
            before=step.before,
            after=step.after,
            newest=newest,
            started=line.started[step.index],
            nearby=line.shas[max(0, step.index - NEAR) : step.index + NEAR + 1],
        )
