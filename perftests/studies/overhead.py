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


def overhead(sizes_mib: Sequence[int]) -> Section:
    """Compare a case's wall time with the GPU's part of it, checks included, yardsticks made."""
    session, checks = new_session(), new_session(timing=False)
    rows: list[Row] = []
    for mib in sizes_mib:
        measured(session, mib)
        walls = measured(session, mib).walls
        checking = _gpu_seconds_of_checks(checks, mib)
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
        "of a case's wall time, the share in which the GPU neither flushes nor launches nor checks;"
        " held streams count as idle, and so does what the host does alone"
    )
    return Section("Overhead", how, rows)


def _gpu_seconds_of_checks(session: Session, mib: int) -> float:
    """Return how long the GPU works on a case that is checked only, as CUPTI sees it."""
    from torch.profiler import ProfilerActivity, profile

    measured(session, mib)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        measured(session, mib)
    spent = [
        event.self_device_time_total
        for event in seen.key_averages()
        if not event.key.startswith(_HOLDS)
    ]
    return float(sum(spent)) * 1e-6
