"""Candidates timed in random turns: what stands beside what must not decide between them.

A fixed order of candidates shows those at even places up to 0.4 us apart from those at odd places
on an H200. Here every round has an order of its own, and the rounds' own spread is the error.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftests.harness.sampling import Runner
    from perftests.harness.session import Bench

Name = TypeVar("Name")
ROUNDS = 8
FEWEST, MOST = 2, 64
"""Launches of a turn."""


@dataclass(frozen=True)
class Turned:
    """A candidate's time in seconds and its standard error, from the rounds' spread."""

    seconds: float
    error_s: float


def midmean(samples_s: Sequence[float]) -> float:
    """Return the mean of the middle half: robust as a median, and finer than a timer's step."""
    ordered = np.sort(np.asarray(samples_s, dtype=np.float64))
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def in_turns(
    bench: Bench,
    candidates: Mapping[Name, Sequence[Callable[[], object]]],
    seconds_each: float,
    rounds: int = ROUNDS,
) -> dict[Name, Turned]:
    """Return the cold time of each candidate, `seconds_each` seconds of the wall for each."""
    runners = {name: bench.device.runner("cold", list(calls)) for name, calls in candidates.items()}
    return turned(runners, seconds_each, rounds)


def turned(
    runners: Mapping[Name, Runner], seconds_each: float, rounds: int = ROUNDS
) -> dict[Name, Turned]:
    """Return the time of what each runner launches, after a round that does not count."""
    counts = {name: _launches(runner, seconds_each / rounds) for name, runner in runners.items()}
    found: dict[Name, list[float]] = {name: [] for name in runners}
    chance = random.Random(rounds)  # noqa: S311 - an order, no secret
    for _ in range(rounds):
        order = list(runners)
        chance.shuffle(order)
        for name in order:
            seconds = runners[name].batch(counts[name]).seconds
            if seconds:
                found[name].append(midmean(seconds))
    return {
        name: Turned(mean(values), stdev(values) / sqrt(len(values)))
        for name, values in found.items()
        if len(values) > 1
    }


def _launches(runner: Runner, seconds: float) -> int:
    """Return how many launches fill a turn; the first of them warm up."""
    runner.batch(FEWEST)
    began = time.perf_counter()
    runner.batch(FEWEST)
    each = max((time.perf_counter() - began) / FEWEST, 1e-6)
    return max(FEWEST, min(MOST, round(seconds / each)))
