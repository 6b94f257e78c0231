"""Where the level of a series changes, and the level that each result stands on.

Only results that may be compared are searched together: trusted ones of one environment. Where
several boards took part, the fraction of copy is searched, since boards of one model differ by
about a percent in time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.stats.change_point import change_points, history
from tracker.stats.screen import may_change
from tracker.verdict import Policy

Floats = NDArray[np.float64]
# Fewer results than this have no level to leave.
_SHORTEST = 4
_USUAL = Policy()
_TRUSTED = ("ok", "noisy")


class Found(Protocol):
    """A change point, as far as it is used here."""

    @property
    def index(self) -> int:
        """Place of the first value of the new level."""

    @property
    def effect(self) -> float:
        """Relative change of the searched values."""

    @property
    def p_value(self) -> float:
        """How often noise alone would show such a change."""


Detector = Callable[[Sequence[float]], Sequence[Found]]


@dataclass(frozen=True, slots=True)
class Step:
    """A change of level: the index of its first result and of the last one before, and its size.

    `effect` is the relative change of bandwidth, `before` and `after` the levels in bytes per
    second. `lasting` says that the level was not left again in the other direction.
    """

    index: int
    previous: int
    effect: float
    p_value: float
    before: float
    after: float
    lasting: bool


@dataclass(frozen=True, slots=True)
class Course:
    """A series as far as levels need it, in commit order: columns of one length.

    Bytes per second and fraction of copy are NaN where nothing was measured.
    """

    bandwidth: Floats
    copy_fraction: Floats
    environment: Sequence[str]
    device: Sequence[str]
    trusted: NDArray[np.bool_]


def trusted(status: NDArray[np.str_], shared: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which results count: without a fault, on a device that was not shared."""
    return np.isin(status, _TRUSTED) & ~shared


def steps(course: Course, policy: Policy = _USUAL, detect: Detector = change_points) -> list[Step]:
    """Return the changes of level, in order.

    As with verdicts, a change must be both surer than chance and large enough to matter.
    """
    found = (_found(part, course, policy, detect) for part in _parts(course))
    return sorted(chain.from_iterable(found), key=lambda step: step.index)


def steps_of(courses: Sequence[Course], policy: Policy = _USUAL) -> list[list[Step]]:
    """Return the changes of level of many series; one that cannot have any costs little."""
    parts = [(place, part) for place, course in enumerate(courses) for part in _parts(course)]
    by_length: dict[int, list[int]] = {}
    for number, (_, part) in enumerate(parts):
        by_length.setdefault(part.values.size, []).append(number)
    found: list[list[Step]] = [[] for _ in courses]
    for numbers in by_length.values():
        rows = np.array([parts[number][1].values for number in numbers])
        for which in np.flatnonzero(may_change(rows, policy.minimal_effect)):
            place, part = parts[numbers[which]]
            found[place] += _found(part, courses[place], policy, change_points)
    return [sorted(several, key=lambda step: step.index) for several in found]


def drift(course: Course, found: Sequence[Step], policy: Policy = _USUAL) -> float | None:
    """Return the steady change of the newest environment's results, relative, None without one.

    A level that left by one of the steps that were `found` does not drift.
    """
    newest = max(_parts(course), key=lambda part: int(part.places[-1]), default=None)
    if newest is None or any(step.index in newest.places for step in found):
        return None
    slow = history(newest.values.tolist()).drift
    return slow.effect if slow is not None and abs(slow.effect) >= policy.minimal_effect else None


@dataclass(frozen=True, slots=True)
class _Part:
    """Results that may be compared: their places in the course, and the values to search."""

    places: NDArray[np.int64]
    values: Floats


def _parts(course: Course) -> Iterator[_Part]:
    for places in _comparable(course):
        boards = {course.device[i] for i in places}
        source = course.copy_fraction if len(boards) > 1 else course.bandwidth
        values = source[places]
        if places.size >= _SHORTEST and np.isfinite(values).all():
            yield _Part(places, values)


def _found(part: _Part, course: Course, policy: Policy, detect: Detector) -> list[Step]:
    points = [
        point
        for point in detect(part.values.tolist())
        if point.p_value <= 1 - policy.confidence and abs(point.effect) >= policy.minimal_effect
    ]
    return _steps(part, course.bandwidth[part.places], points) if points else []


def _comparable(course: Course) -> list[NDArray[np.int64]]:
    """Return the indices of each environment's trusted results."""
    groups: dict[str, list[int]] = {}
    for i in np.flatnonzero(course.trusted & np.isfinite(course.bandwidth)).tolist():
        groups.setdefault(course.environment[i], []).append(i)
    return [np.array(group, dtype=np.int64) for group in groups.values()]


def _steps(part: _Part, bandwidth: Floats, found: Sequence[Found]) -> list[Step]:
    points = sorted(found, key=lambda point: point.index)
    edges = [0, *(point.index for point in points), part.values.size]
    rates = [float(np.median(bandwidth[a:b])) for a, b in pairwise(edges)]
    levels = [float(np.median(part.values[a:b])) for a, b in pairwise(edges)]
    return [
        Step(
            index=int(part.places[point.index]),
            previous=int(part.places[point.index - 1]),
            effect=levels[i + 1] / levels[i] - 1,
            p_value=float(point.p_value),
            before=rates[i],
            after=rates[i + 1],
            lasting=lasting(levels[i], levels[i + 1], levels[-1]),
        )
        for i, point in enumerate(points)
        if 0 < point.index < part.values.size
    ]


def lasting(before: float, after: float, newest: float) -> bool:
    """Return whether the newest level still keeps more than half of a change."""
    return (newest - before) * (after - before) > (after - before) ** 2 / 2


def baseline(course: Course, found: Sequence[Step], values: Floats) -> Floats:
    """Return, for each result, the median of `values` on its level; NaN for untrusted results."""
    level = np.full(values.size, np.nan)
    starts = {step.index for step in found}
    for part in _comparable(course):
        cuts = [0, *(i for i, index in enumerate(part) if int(index) in starts), part.size]
        for a, b in pairwise(cuts):
            if b > a:
                level[part[a:b]] = float(np.median(values[part[a:b]]))
    return level
