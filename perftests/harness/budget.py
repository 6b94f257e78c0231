"""A session's time, shared out among its cases.

Each case may take an equal part of what is left. Checks, compilation and yardsticks come first;
what they usually take is known from the cases before, and the sample gets the rest.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_S = {"cuda": 0.01, "cpu": 0.03}
"""What a sample gets however late it is, by device kind: a time of few launches is still a time."""
_REMEMBERED = 15


@dataclass
class Budget:
    """Seconds for `cases` cases, from the first call on."""

    seconds: float
    cases: int
    clock: Callable[[], float] = time.monotonic
    _end: float | None = None
    _done: int = 0
    _other: list[float] = field(default_factory=list)

    def sample_s(self, kind: str) -> float:
        """Return the seconds that the next sample may take on a device kind."""
        now = self.clock()
        if self._end is None:
            self._end = now + self.seconds
        share = (self._end - now) / max(1, self.cases - self._done)
        other = median(self._other) if self._other else 0.0
        return max(LEAST_S[kind], share - other)

    def spent(self, total_s: float, sample_s: float) -> None:
        """Note what a case took in all, and what of it its sample took."""
        self._done += 1
        self._other = [*self._other[1 - _REMEMBERED :], total_s - sample_s]
