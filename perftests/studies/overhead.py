"""How much of a case's wall time the GPU does not work: the harness's own cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftests.studies.tables import Row, Section
from perftests.studies.timed import measured, new_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.session import Session

GOAL = 0.3
_HOLDS = ("bw_spin", "bw_hold")
_BRIEF_SAMPLES = 8
_REPEATS = 5


def overhead(sizes_mib: Sequence[int]) -> Section:
    """Compare a case's wall time with the GPU's part of it, checks included, yardsticks made.

    The profiler comes last: once it has looked, launches take longer for as long as the process
    lives.
    """
    session, brief = new_session(), new_session(_BRIEF_SAMPLES)
    spent = {mib: _walls(session, mib) for mib in sizes_mib}
    rows: list[Row] = []
    for mib, walls in spent.items():
        checking = _REPEATS * _gpu_seconds_of_checks(brief, mib)
        wall, working = walls["total"], walls["busy"] + checking
        rows.append(
            {
                "MiB": mib,
                "wall s": wall,
                "timing s": walls["timing"],
                "GPU works in timing s": walls["busy"],
                "GPU works in checks s": checking,
                "outside GPU work": 1 - working / wall,
                "of timing outside GPU work": 1 - walls["busy"] / walls["timing"],
                "goal": GOAL,
                "reached": 1 - working / wall <= GOAL,
            }
        )
    how = (
        f"of a case's wall time, {_REPEATS} times over, the share in which the GPU neither flushes "
        "nor launches nor checks; held streams count as idle, and so does what the host does alone"
    )
    return Section("Overhead", how, rows)


def _walls(session: Session, mib: int) -> dict[str, float]:
    """Return where the wall time of some repeats went, in seconds."""
    measured(session, mib)
    each = [measured(session, mib).walls for _ in range(_REPEATS)]
    return {name: sum(walls[name] for walls in each) for name in each[0]}


def _gpu_seconds_of_checks(session: Session, mib: int) -> float:
    """Return how long the GPU works on a case's checks, as CUPTI sees it.

    The chain is the one that times, with a sample so short that what the events around its launches
    add to them does not count; the launches and flushes are taken off again.
    """
    from torch.profiler import ProfilerActivity, profile

    measured(session, mib)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        timed = measured(session, mib).walls["busy"]
    spent = [
        event.self_device_time_total
        for event in seen.key_averages()
        if not event.key.startswith(_HOLDS)
    ]
    return max(0.0, float(sum(spent)) * 1e-6 - timed)
