"""A session's sampling time, shared out among its cases.

Each case may sample for an equal part of what is left, and what a precise one leaves over goes to
those after it. Checks, compilation and yardsticks are not counted: a slow compiler in the first
cases would starve the last.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Budget:
    """Seconds of sampling for `cases` cases."""

    seconds: float
    cases: int
    _used: float = 0.0
    _done: int = 0

    def sample_s(self) -> float:
        """Return the seconds that the next sample may take: at least half of an equal part."""
        left = (self.seconds - self._used) / max(1, self.cases - self._done)
        return max(left, self.seconds / (2 * self.cases))

    def spent(self, sample_s: float) -> None:
        """Note how long a case sampled."""
        self._done += 1
        self._used += sample_s
