"""What earlier runs say of each case: at a glance for all of them, whole for those that count.

A check looks at dozens of runs of a thousand cases and needs the measurements of two or three.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracker.model import Case, Result, Status
from tracker.queries import RunInfo, histories, result_table
from tracker.store import Store


@dataclass(frozen=True, slots=True)
class Seen:
    """An earlier result of a case at a glance; `shared`: another process used the device."""

    info: RunInfo
    case: Case
    status: Status
    shared: bool
    median_s: float

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
        return not (self.throttled or self.shared or self.incorrect)


class Past:
    """The results of earlier runs, by case fingerprint, in the order of the runs."""

    def __init__(self, store: Store, infos: Sequence[RunInfo]) -> None:
        self._store = store
        self._seen: dict[str, list[Seen]] = {}
        self._whole: dict[tuple[int, str], Result] = {}
        if not infos:
            return
        table = result_table(store, infos)
        statuses = {str(status): status for status in Status}
        columns = (table.run, table.case, table.status, table.shared, table.median_s)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for run, case, status, shared, median_s in rows:
            seen = Seen(infos[run], table.cases[case], statuses[status], shared, median_s)
            self._seen.setdefault(table.case_keys[case], []).append(seen)

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
        return self._whole[seen.info.number, seen.case.fingerprint]
