"""What the parts of the trust study share: one measurement of the study's kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftests.harness.chain import measure
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.studies.relu import relu_workload

if TYPE_CHECKING:
    from perftests.harness.chain import Outcome


def measured(session: Session, mib: int, *, more: float = 0.0) -> Outcome:
    """Return the outcome at a size; raise RuntimeError when the chain broke."""
    outcome = measure(relu_workload(mib, more=more), session)
    if outcome.broken is not None:
        raise RuntimeError(f"no time at {mib} MiB: {outcome.broken}")
    return outcome


def new_session(max_samples: int | None = None) -> Session:
    """Return a session with the default limits, or with fewer samples a case."""
    return Session(Settings(max_samples=max_samples))
