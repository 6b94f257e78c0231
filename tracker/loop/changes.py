"""The change points of every series on a branch, as the store has them now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from tracker.model import Case
from tracker.queries import Series, SeriesInfo, series, series_list
from tracker.stats.change_point import history
from tracker.store import Store
from tracker.store.people import Triage

# The place of a change may move by so many commits as runs are added.
NEAR = 3
_TRUSTED = ("ok", "noisy")


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
        return self.effect < 0 and (self.newest - self.after) > (self.before - self.after) / 2


@dataclass(frozen=True, slots=True)
class Line:
    """One series as commits: what each reached, in commit order."""

    case: Case
    gpu_model: str
    shas: tuple[str, ...]
    bandwidth: tuple[float, ...]
    judged: tuple[float, ...]
    started: tuple[float, ...]


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
    level = float(np.median(line.bandwidth))
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
    """Yield every series of a branch, in its newest environment, with its trusted results."""
    newest: dict[tuple[str, str], SeriesInfo] = {}
    for info in series_list(store, gpu_model=gpu_model):
        known = newest.get((info.case_key, info.gpu_model))
        if known is None or info.last_started > known.last_started:
            newest[info.case_key, info.gpu_model] = info
    for (key, model), info in newest.items():
        found = series(store, key, model, environment_key=info.environment_key, branch=branch)
        kept = [i for i in range(len(found)) if _usable(found, i)]
        if kept:
            yield _line(found, kept)


def _usable(found: Series, i: int) -> bool:
    trusted = found.status[i] in _TRUSTED and not found.shared[i]
    return bool(trusted and found.sha[i] and isfinite(found.bandwidth[i]))


def _line(found: Series, kept: Sequence[int]) -> Line:
    # Boards of one model differ in time by about a percent, in the fraction of copy hardly.
    boards = {int(found.device[i]) for i in kept}
    several = len(boards) > 1 and all(isfinite(found.copy_fraction[i]) for i in kept)
    judged = found.copy_fraction if several else found.bandwidth
    groups: dict[str, list[int]] = {}
    for i in kept:
        groups.setdefault(str(found.sha[i]), []).append(i)
    return Line(
        case=found.case,
        gpu_model=found.gpu_model,
        shas=tuple(groups),
        bandwidth=_medians(found.bandwidth, groups.values()),
        judged=_medians(judged, groups.values()),
        started=tuple(float(found.started[g[0]]) for g in groups.values()),
    )


def _medians(values: NDArray[np.float64], groups: Iterable[Sequence[int]]) -> tuple[float, ...]:
    return tuple(float(np.median(values[list(group)])) for group in groups)


def _changes(line: Line) -> Iterator[Change]:
    points = history(line.judged).changes
    edges = [point.index for point in points]
    ends = [*edges[1:], len(line.shas)]
    starts = [0, *edges]
    for number, point in enumerate(points):
        before = line.bandwidth[starts[number] : point.index]
        after = line.bandwidth[point.index : ends[number]]
        yield Change(
            case=line.case,
            gpu_model=line.gpu_model,
            sha=line.shas[point.index],
            previous_sha=line.shas[point.index - 1],
            effect=point.effect,
            p_value=point.p_value,
            before=float(np.median(before)),
            after=float(np.median(after)),
            newest=float(np.median(line.bandwidth[edges[-1] :])),
            started=line.started[point.index],
            nearby=line.shas[max(0, point.index - NEAR) : point.index + NEAR + 1],
        )
