"""Changes that the gate saw run by run, for histories that are too short for change points.

A change point needs several runs on either side, and one or two bad runs are none. In a young store
that would leave the pages silent on what the gate told at once; so there its verdicts stand in.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboard import data, judging
from dashboard.data import Snapshot
from tracker.queries import RunInfo

# Longer histories than this show what matters by change points.
FEW_RUNS = 12
# A change point so many runs beside what the gate told is the same change.
NEAR = 2
_CHANGED = ("regression", "improvement")


@dataclass(frozen=True, slots=True)
class Seen:
    """A change of one case, as the gate told it of one run against its base.

    `effect` is the relative change of bandwidth, `before` and `after` are bytes per second.
    """

    case_key: str
    label: str
    kernel: str
    run_id: str
    base_run: str
    kind: str
    effect: float
    p_value: float
    before: float
    after: float


def seen(snapshot: Snapshot, gpu: str, branch: str | None) -> tuple[Seen, ...]:
    """Return what the gate told of each run of a short history, oldest first; else nothing."""
    runs = data.clean_runs(snapshot, gpu, branch, FEW_RUNS + 1)
    if len(runs) > FEW_RUNS:
        return ()
    return tuple(_once(_told(snapshot, runs[::-1])))


def _told(snapshot: Snapshot, runs: Iterable[RunInfo]) -> Iterator[Seen]:
    for run in runs:
        rows = judging.of_run(snapshot, run.run_id).rows
        for row in rows[rows["outcome"].isin(_CHANGED)].to_dict("records"):
            if row["base_run"]:
                yield Seen(
                    case_key=str(row["case_key"]),
                    label=str(row["label"]),
                    kernel=str(row["kernel"]),
                    run_id=run.run_id,
                    base_run=str(row["base_run"]),
                    kind=str(row["outcome"]),
                    effect=float(row["effect"]),
                    p_value=float(row["p_value"]),
                    before=float(row["base_bandwidth"]),
                    after=float(row["head_bandwidth"]),
                )


def _once(found: Iterable[Seen]) -> Iterator[Seen]:
    """Yield changes without what a further run tells again: the same case from the same base."""
    told = set()
    for one in found:
        key = (one.case_key, one.kind, one.base_run)
        if key not in told:
            told.add(key)
            yield one
