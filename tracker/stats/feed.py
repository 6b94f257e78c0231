"""Many monitors fed at once: the runs of many series of which only the newest verdict is wanted.

A run before the newest matters only where it changes what a monitor remembers: where a change is
called. The rule is asked about all series together, and a monitor itself only where it may call.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from tracker.stats.level import Array, Known, Mask, expect, fit
from tracker.stats.monitor import REMEMBER, Monitor, shortest_series
from tracker.stats.shift import GAP, SHORTEST_LEVEL, shifts

Places = npt.NDArray[np.intp]
# Sums over many rows differ from those over one in their last digits.
_ROUNDING = 1e-6


def feed(
    rows: Array, minimal_effects: Sequence[float], learned: Sequence[int] | None = None
) -> list[Monitor]:
    """Return a monitor for each row (S, n) of positive numbers, as n calls of `update` leave it.

    The first `learned` runs of each row are learned instead.
    """
    series = _Series(rows, minimal_effects, learned or [0] * rows.shape[0])
    left = list(range(rows.shape[0]))
    while left:
        left = [row for group in series.alike(left) for row in series.until_called(group)]
    return series.finished()


class _Series:
    """Monitors and how many runs of its row each took."""

    def __init__(
        self, rows: Array, minimal_effects: Sequence[float], learned: Sequence[int]
    ) -> None:
        self._rows = rows
        self._effects = np.array(minimal_effects)
        self._monitors = [Monitor(minimal_effect=effect) for effect in minimal_effects]
        self._fed = np.zeros(rows.shape[0], dtype=np.intp)
        for row, count in enumerate(learned):
            self._learn(row, count)

    def finished(self) -> list[Monitor]:
        """Return the monitors with all their runs."""
        for row in range(len(self._monitors)):
            self._learn(row, self._rows.shape[1])
        return self._monitors

    def alike(self, which: Sequence[int]) -> Iterator[list[int]]:
        """Yield rows together that know as much of their noise: nothing, no whole run, more."""

        def knowledge(row: int) -> int:
            known = self._monitors[row].known
            return 0 if known is None else 1 + bool(np.all(known.degrees >= 1))

        for _, group in groupby(sorted(which, key=knowledge), key=knowledge):
            yield list(group)

    def until_called(self, group: Sequence[int]) -> list[int]:
        """Feed the rows until a change is called in each or it ends; return those that changed."""
        rows = np.array(group)
        begin = self._fed[rows] - [self._monitors[row].runs for row in group]
        known = self._known(group)
        open_ = np.ones(rows.size, dtype=np.bool_)
        shortest = min(shortest_series(self._monitors[group[0]].known), SHORTEST_LEVEL + 1)
        for runs in range(shortest, self._rows.shape[1] - int(begin.min()) + 1):
            end = begin + runs
            due = np.flatnonzero(open_ & (end > self._fed[rows]) & (end <= self._rows.shape[1]))
            if not due.size:
                continue
            size = min(runs, REMEMBER)
            window = self._rows[rows[due, None], end[due, None] + np.arange(-size, 0)]
            may = _may_call(window, _of(known, due), self._effects[rows[due]])
            for place in due[may].tolist():
                open_[place] = not self._calls(group[place], int(end[place]), size)
        return [row for row, still in zip(group, open_.tolist(), strict=True) if not still]

    def _known(self, group: Sequence[int]) -> Known | None:
        known = [found for row in group if (found := self._monitors[row].known) is not None]
        if not known:
            return None
        return Known(
            np.array([item.variance for item in known]),
            np.array([item.degrees for item in known]),
            np.array([item.correlation for item in known]),
        )

    def _calls(self, row: int, end: int, runs: int) -> bool:
        """Feed a row until `end` and return whether its last run made its monitor begin anew."""
        monitor = self._monitors[row]
        self._learn(row, end - 1)
        before = monitor.known
        monitor.update(float(self._rows[row, end - 1]))
        self._fed[row] = end
        return monitor.known is not before or monitor.runs < runs

    def _learn(self, row: int, end: int) -> None:
        self._monitors[row].learn(self._rows[row, self._fed[row] : end].tolist())
        self._fed[row] = end


def _of(known: Known | None, places: Places) -> Known | None:
    if known is None:
        return None
    columns = (known.variance, known.degrees, known.correlation)
    return Known(*(np.asarray(column)[places] for column in columns))


def _may_call(rows: Array, known: Known | None, minimal_effects: Array) -> Mask:
    """Return in which rows the last run may call a change; never none where it does."""
    before = rows[:, :-1]
    highest = before.max(axis=1)
    equal = highest - before.min(axis=1) <= 1e-12 * highest
    if before.shape[1] < SHORTEST_LEVEL:
        equal[:] = False
    found: Mask = equal & (rows[:, -1] != rows[:, 0])
    judged = np.flatnonzero(~equal)
    if rows.shape[1] < shortest_series(known) or not judged.size:
        return found
    rows, known = rows[judged], _of(known, judged)
    level = fit(rows[:, :-GAP])
    seen = 0 if known is None else np.asarray(known.degrees).astype(np.intp)
    for sign in (-1, 1):
        expected = expect(level, sign, known)
        shift = shifts(rows, level, expected, sign, loss=sign < 0, seen=seen)
        least = minimal_effects[judged] * np.abs(shift.expected) * (1 - _ROUNDING)
        found[judged] |= ~((shift.margin < -_ROUNDING) | (np.abs(shift.shift) < least))
    return found
