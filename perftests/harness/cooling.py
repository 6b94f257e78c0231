"""Waiting for a device that slowed itself: until it no longer does, never for a fixed time.

Nothing is set. The device idles until NVML names no reason to slow down and its clock is back.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING

from perftests.harness.clock import monotonic
from perftests.harness.state import slowing_reasons

if TYPE_CHECKING:
    from perftests.harness.session import Bench
    from perftests.harness.state import State

SLOW_CLOCK = 0.75
"""Share of the highest SM clock below which a window counts as throttled, as in nvbench."""
_POLL_S = 0.05
_LONGEST_S = 3.0
"""What a case waits at most: a power cap is over within tenths, a hot board may take minutes."""

RELAPSED = "; under work it slowed itself once more, and later cases of this session do not wait"


@dataclass(frozen=True)
class Cooling:
    """How long a case waited, and whether the device no longer slowed itself at the end."""

    waited_s: float
    is_over: bool

    @property
    def told(self) -> str:
        """What the result's warning says of it."""
        if self.is_over:
            return (
                f"the first sample was throttled and dropped: after {self.waited_s:.2f} s without "
                "work the device no longer slowed itself, and was sampled again"
            )
        return (
            f"after {self.waited_s:.2f} s without work the device still slowed itself: not "
            "sampled again, and later cases of this session do not wait"
        )


def cool_down(bench: Bench) -> Cooling | None:
    """Wait within what is left to the session; None where NVML or the time for it is lacking."""
    limit = min(_LONGEST_S, bench.cooling_left_s)
    if bench.watch.handle is None or limit <= 0:
        return None
    highest = getattr(bench.device, "highest_sm_clock_hz", None)
    began = monotonic()
    is_over = _is_over(bench.watch.read(), highest)
    while not is_over and monotonic() - began < limit:
        sleep(_POLL_S)
        is_over = _is_over(bench.watch.read(), highest)
    waited = monotonic() - began
    # Where it did not help once it will not help the next case either.
    bench.cooling_left_s = max(0.0, bench.cooling_left_s - waited) if is_over else 0.0
    return Cooling(waited, is_over)


def _is_over(state: State | None, highest_hz: float | None) -> bool:
    """Whether a device without work shows nothing that would slow the next sample down."""
    if state is None or slowing_reasons([state]):
        return False
    # An idle device lowers its clock by itself, and raises it with the work.
    if "gpu_idle" in state.throttle_reasons or not highest_hz or state.sm_clock_hz is None:
        return True
    return state.sm_clock_hz >= SLOW_CLOCK * highest_hz
