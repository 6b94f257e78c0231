"""A process that watches a GPU's energy counter and says when it moved.

    python -m perftests.studies.joules UUID SECONDS

NVML takes milliseconds for a reading and takes turns with whatever else its process does. In a
process of its own it holds no one up. Each line is `ready`, `step FROM TO JOULES` or
`busy AT SHARE`; seconds are those of the monotonic clock, which the system's processes share.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from perftests.harness.state import Watch, watch_device

if TYPE_CHECKING:
    from collections.abc import Callable

READY, STEP, BUSY = "ready", "step", "busy"
_COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
_POLL_S = 0.0005
_ASK_S = 0.1


def main(arguments: list[str]) -> int:
    """Watch for at most the seconds that are given; return 1 where there is no counter."""
    uuid, seconds = arguments
    watch = watch_device(uuid)
    first = watch.ask(_COUNTER)
    if first is None:
        print(watch.absent or f"NVML refused the energy counter: {_refusal(watch)}", flush=True)
        return 1
    print(READY, flush=True)
    follow(
        lambda: joules(watch), lambda: busy(watch), lambda text: print(text, flush=True), seconds
    )
    return 0


def joules(watch: Watch) -> float:
    """Return the counter; raise RuntimeError where it is refused after all."""
    millijoules = watch.ask(_COUNTER)
    if millijoules is None:
        raise RuntimeError(f"NVML refused the energy counter: {_refusal(watch)}")
    return float(millijoules) / 1e3


def busy(watch: Watch) -> float | None:
    """Return NVML's utilisation as a share, None where it is refused."""
    rates = watch.ask("nvmlDeviceGetUtilizationRates")
    return None if rates is None else float(rates.gpu) / 100


def follow(
    read: Callable[[], float],
    ask: Callable[[], float | None],
    tell: Callable[[str], object],
    seconds: str | float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Tell each step of the counter with the times between which it came, and utilisation.

    The counter was sampled at some time within a call, so that a step is known to lie between the
    start of the last call that missed it and the end of the one that saw it.
    """
    until = clock() + float(seconds)
    began, last = clock(), read()
    asked = clock()
    while clock() < until:
        time.sleep(_POLL_S)
        now = clock()
        value = read()
        if value != last:
            tell(f"{STEP} {began:.6f} {clock():.6f} {value:.3f}")
        began, last = now, value
        if now - asked > _ASK_S:
            asked = now
            share = ask()
            if share is not None:
                tell(f"{BUSY} {now:.6f} {share:.2f}")


def _refusal(watch: Watch) -> str:
    return watch.refused.get(_COUNTER, "no such reading")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
