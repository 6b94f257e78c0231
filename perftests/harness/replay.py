"""Replay of a sample into pytest-benchmark by its public parts only.

pytest-benchmark times a call with a timer. Here the timer is a clock that the call itself moves by
exactly one measurement, so what it stores is bit for bit what was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class SampleClock:
    """A timer that stands at zero until `advance` moves it to the next measurement.

    `__name__` and `__module__` are what pytest-benchmark stores as the timer's name.
    """

    def __init__(self) -> None:
        self.__name__ = "sample_clock"
        self.__module__ = "bandwatch"
        self._samples: Sequence[float] = ()
        self._next = 0
        self._now = 0.0

    def __call__(self) -> float:
        """Return the time in seconds that this clock shows."""
        return self._now

    def load(self, samples_s: Sequence[float], timer: str) -> None:
        """Take the measurements to show and the name of the timer that made them."""
        self._samples, self._next, self._now = tuple(samples_s), 0, 0.0
        self.__name__ = timer

    def reset(self) -> None:
        """Stand at zero before a round."""
        self._now = 0.0

    def advance(self) -> None:
        """Move by the next measurement; calls beyond the last one move nothing.

        pytest-benchmark makes such calls when it is disabled or profiles.
        """
        if self._next < len(self._samples):
            self._now = self._samples[self._next]
            self._next += 1


def replay(benchmark: Any, clock: SampleClock, samples_s: Sequence[float], timer: str) -> None:
    """Hand a sample to pytest-benchmark's fixture, whose timer must be `clock`.

    An empty sample marks the fixture as used and stores nothing of worth, so callers pass one only
    where pytest-benchmark is disabled.
    """
    clock.load(samples_s, timer)
    benchmark.pedantic(
        clock.advance, setup=clock.reset, rounds=max(1, len(samples_s)), iterations=1
    )


def refuse(benchmark: Any, error: Exception) -> None:
    """Mark pytest-benchmark's fixture as failed with `error`, so that it stores and shows nothing.

    The error is raised inside the measured call, which is the public way to say so.
    """

    def fail() -> None:
        raise error

    try:
        benchmark.pedantic(fail, rounds=1, iterations=1)
    except type(error):
        return
