"""What earlier runs say of each case: at a glance for all of them, whole for those that count.

A check looks at dozens of runs of a thousand cases and needs the measurements of two or three.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from tracker.model import Case, Result, Status
from tracker.queries import ResultTable, RunInfo, histories, result_table
from tracker.sides import Earlier
from tracker.stats.summary import IQR_TO_SD
from tracker.store import Store


@dataclass(frozen=True, slots=True)
class Seen:
    """An earlier result of a case at a glance; `shared`: another process used the device.

    `key` is the case's fingerprint. `glance` holds its numbers; without a median it is never looked
    at.
    """

    info: RunInfo
    case: Case
    key: str
    status: Status
    shared: bool
    glance: Earlier

    @property
    def throttled(self) -> bool:
        """Whether the device throttled."""
        return self.status is Status.THROTTLED

    @property
    def incorrect(self) -> bool:
        """Whether the result failed or its time may not be trusted at all."""
        return self.status not in {Status.OK, Status.NOISY, Status.THROTTLED}

    @property
    def usable(self) -> bool:
        """Whether it may stand in a baseline."""
        known = isfinite(self.glance.time_s) and self.glance.time_s > 0
        return known and not (self.throttled or self.shared or self.incorrect)


class Past:
    """The results of earlier runs, by case fingerprint, in the order of the runs."""

    def __init__(self, store: Store, infos: Sequence[RunInfo]) -> None:
        self._store = store
        self._seen: dict[str, list[Seen]] = {}
        self._whole: dict[tuple[int, str], Result] = {}
        if not infos:
            return
        for seen in _seen(result_table(store, infos)):
            self._seen.setdefault(seen.key, []).append(seen)

    def of(self, key: str) -> Sequence[Seen]:
        """Return what there is of a case."""
        return self._seen.get(key, ())

    def of_run(self, info: RunInfo) -> dict[str, Seen]:
        """Return what a run has, by case fingerprint."""
        return {
            key: seen
            for key, found in self._seen.items()
            for seen in found
            if seen.info.number == info.number
        }

    def load(self, wanted: Iterable[Seen]) -> None:
        """Read the whole results of the runs that these are of, for `result`."""
        runs = {seen.info.number: seen.info for seen in wanted}
        for key, found in histories(self._store, tuple(runs.values())).items():
            for info, result in found:
                self._whole[info.number, key] = result

    def result(self, seen: Seen) -> Result:
        """Return the result with its measurements, without device states; loaded before."""
        return self._whole[seen.info.number, seen.key]


def _seen(table: ResultTable) -> Iterator[Seen]:
    """Yield what each row says at a glance."""
    statuses = {str(status): status for status in Status}
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(table.q3_s / table.q1_s) * IQR_TO_SD
        copy_cost = table.copy_bytes_per_s * table.median_s / table.bytes_moved
    columns = (
        *(table.run, table.case, table.status, table.shared),
        *(table.median_s, spread, table.count, table.median_cycles, copy_cost),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for run, case, status, shared, median_s, width, count, cycles, cost in rows:
        glance = Earlier(median_s, width, count, _known(cycles), _known(cost))
        info, what, key = table.runs[run], table.cases[case], table.case_keys[case]
        yield Seen(info, what, key, statuses[status], shared, glance)


def _known(value: float) -> float | None:
    return value if isfinite(value) and value > 0 else None
