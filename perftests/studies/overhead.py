"""How much of a case's wall time the GPU does not work: the harness's own cost."""

from __future__ import annotations

from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.harness import chain
from perftests.studies.tables import Row, Section
from perftests.studies.timed import measured, new_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftests.harness.session import Session

GOAL = 0.3
_HOLDS = ("bw_spin", "bw_hold")
_TIMED = "the timed part"
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
        timing = walls["busy"] + _REPEATS * _untimed_s(session, mib)
        wall, working = walls["total"], timing + checking
        rows.append(
            {
                "MiB": mib,
                "wall s": wall,
                "timing s": walls["timing"],
                "GPU works in timing s": timing,
                "GPU works in checks s": checking,
                "outside GPU work": 1 - working / wall,
                "of timing outside GPU work": 1 - timing / walls["timing"],
                "goal": GOAL,
                "reached": 1 - working / wall <= GOAL,
            }
        )
    how = (
        f"of a case's wall time, {_REPEATS} times over, the share in which the GPU neither flushes "
        "nor launches nor checks; held streams count as idle, and so does what the host does "
        "alone; the launches by which each place and stream is made known count as work"
    )
    return Section("Overhead", how, rows)


def _walls(session: Session, mib: int) -> dict[str, float]:
    """Return where the wall time of some repeats went, in seconds."""
    measured(session, mib)
    each = [measured(session, mib).walls for _ in range(_REPEATS)]
    return {name: sum(walls[name] for walls in each) for name in each[0]}


def _untimed_s(session: Session, mib: int) -> float:
    """Return how long the launches take by which every place and stream is made known."""
    import torch

    device: Any = session.bench(torch.device("cuda", 0)).device
    with device.stream():
        places = device.sets_needed("cold", 2 * mib << 20)
        launches = max(places, len(device.streams(places)))
    return float(launches * median(measured(session, mib).seconds))


def _gpu_seconds_of_checks(session: Session, mib: int) -> float:
    """Return how long the GPU works on a case's checks, as CUPTI sees it.

    The chain is the one that times. Its timed part begins and ends with a wait for the device, so
    what the device did meanwhile is told from the checks by when it did it.
    """
    from torch.profiler import ProfilerActivity, profile

    measured(session, mib)
    with _marked(), profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        measured(session, mib)
    return checking_s(seen.events())


def checking_s(events: Any) -> float:
    """Return the seconds of the device's events outside the timed part; holds count as idle.

    `events` are a profiler's, in microseconds.
    """
    (timed,) = (e.time_range for e in events if e.name == _TIMED and not _on_device(e))
    spent = sum(
        event.time_range.elapsed_us()
        for event in events
        if _on_device(event)
        and not event.name.startswith((*_HOLDS, _TIMED))
        and not timed.start <= event.time_range.start <= timed.end
    )
    return 1e-6 * float(spent)


def _on_device(event: Any) -> bool:
    return bool(event.device_type.name == "CUDA")


@contextmanager
def _marked() -> Iterator[None]:
    """Let a profiler see where the timed part of a chain begins and ends."""
    from torch.profiler import record_function

    usual = vars(chain)["time_workload"]

    def marked(*given: Any) -> Any:
        with record_function(_TIMED):
            return usual(*given)

    vars(chain)["time_workload"] = marked
    try:
        yield
    finally:
        vars(chain)["time_workload"] = usual
