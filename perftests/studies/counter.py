"""The energy counter as another process saw it, joined to what happened here by the clock."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftests.harness.energy import EnergyError, Power, Step, power
from perftests.studies.joules import BUSY, READY, STEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST_STEPS = 4
LONGEST_S = 60.0
"""The other process ends by itself after this, whatever becomes of the one that started it."""


@dataclass
class Seen:
    """Steps of the counter and NVML's utilisation with its time, complete after the block."""

    steps: list[Step] = field(default_factory=list)
    busy: list[tuple[float, float]] = field(default_factory=list)

    def between(self, start_s: float, end_s: float) -> list[Step]:
        """Return the steps that surely came within a time; raise EnergyError for too few."""
        found = [
            step
            for step in self.steps
            if step.at_s - step.within_s >= start_s and step.at_s + step.within_s <= end_s
        ]
        if len(found) < LEAST_STEPS:
            raise EnergyError(
                f"the energy counter moved {len(found)} times in {end_s - start_s:.1f} s; expected "
                f"{LEAST_STEPS} or more"
            )
        return found

    def utilisation(self, start_s: float, end_s: float) -> float | None:
        """Return the mean of NVML's readings in the later half of a time, None for none.

        Each reading looks back for a while, so that the first hold the time before.
        """
        late = [share for at, share in self.busy if (start_s + end_s) / 2 <= at <= end_s]
        return sum(late) / len(late) if late else None


def command(uuid: str) -> list[str]:
    """Return the command line of the process that watches a GPU."""
    return [sys.executable, "-m", "perftests.studies.joules", uuid, str(LONGEST_S)]


@contextmanager
def watched(arguments: Sequence[str]) -> Iterator[Seen]:
    """Have another process watch the counter during the block; what it saw is there afterwards.

    Raises EnergyError where it cannot begin or saw nothing that can be understood.
    """
    seen = Seen()
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            first = other.stdout.readline().strip()
            if first != READY:
                _, error = other.communicate()
                why = first or " ".join(error.strip().splitlines()[-1:]) or "no word of it"
                raise EnergyError(f"the energy counter cannot be watched: {why}")
            yield seen
        finally:
            other.terminate()
            said, _ = other.communicate()
    _understand(said, seen)


def _understand(said: str, seen: Seen) -> None:
    """Put lines into `seen`; the last may be cut off, where the process was ended."""
    for line in said.splitlines(keepends=True):
        kind, *numbers = line.split()
        if not line.endswith("\n"):
            continue
        if kind == STEP:
            start, end, joules = map(float, numbers)
            seen.steps.append(Step(joules, (start + end) / 2, (end - start) / 2))
        elif kind == BUSY:
            at, share = map(float, numbers)
            seen.busy.append((at, share))


@dataclass(frozen=True)
class Load:
    """Iterations between two steps of the counter: what they took, and what the board drew.

    `power` is that of the window, `joules` an iteration's with its standard error, `per_s` the
    iterations a second of the same window. `utilisation` is NVML's, a share.
    """

    power: Power
    joules: float
    joules_error: float
    per_s: float
    utilisation: float | None = None

    @property
    def iterations(self) -> float:
        """How many iterations the window holds."""
        return self.per_s * self.power.window_s


def load(seen: Seen, ends_s: Sequence[float], settle_s: float) -> Load:
    """Return the energy of iterations that ended at `ends_s` of the monotonic clock, in order.

    The first `settle_s` after the first end are left out. Iterations and joules are counted between
    the same two steps, so that no other pace enters. The error is that of `power`, with iterations
    in the place of seconds: the scatter from step to step, and where the polls leave the ends open.
    """
    start, end = ends_s[0] + settle_s, ends_s[-1]
    steps = seen.between(start, end)
    done = [_done(ends_s, step.at_s) for step in steps]
    window = steps[-1].at_s - steps[0].at_s
    per_s = (done[-1] - done[0]) / window
    each = power(
        [
            Step(step.joules, count, step.within_s * per_s)
            for step, count in zip(steps, done, strict=True)
        ]
    )
    return Load(power(steps), each.watts, each.error_w, per_s, seen.utilisation(start, end))


def _done(ends_s: Sequence[float], at_s: float) -> float:
    """Return how many iterations had ended at a time, the one under way by its share."""
    after = bisect_right(ends_s, at_s)
    if after == len(ends_s):
        return float(after)
    before_s = ends_s[after - 1]
    return after + (at_s - before_s) / (ends_s[after] - before_s)
