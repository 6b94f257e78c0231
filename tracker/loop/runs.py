"""What a measuring process brought, as runs that can be recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tracker.loop.fresh import Measured
from tracker.model import Checkout, Run
from tracker.record import assemble, new_run_id
from tracker.session import now


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the runs of one command have in common, and where their ids and times come from."""

    command: str
    ci: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], str] = now
    new_id: Callable[[], str] = new_run_id


def to_runs(
    measured: Measured,
    checkout: Checkout,
    stamp: Stamp,
    started: str,
    *,
    note: str | None = None,
    complete: bool = False,
    run_id: str | None = None,
) -> tuple[Run, ...]:
    """Return the runs of one process, one a device; none where nothing was measured."""
    if not measured.envelopes:
        return ()
    return assemble(
        measured.envelopes,
        checkout,
        run_id=run_id or stamp.new_id(),
        started_at=started,
        finished_at=stamp.now(),
        complete=complete,
        command=stamp.command,
        ci=stamp.ci,
        notes=(note,) if note else (),
    )
