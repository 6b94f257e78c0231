"""How long decisions take: `python -m tracker.evaluate.speed`; `peer` sets Otava beside them."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from tracker.stats.change_point import history
from tracker.stats.level import Array
from tracker.stats.monitor import Monitor
from tracker.stats.shift import scan

LENGTHS = (100, 1_000, 10_000)
MANY = 10_000


def best_of(times: int, call: Callable[[], object]) -> float:
    """Return the shortest of several calls in seconds."""
    found = []
    for _ in range(times):
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return min(found)


def series(runs: int) -> Array:
    """Return the series of so many runs that every tool is timed on."""
    found: Array = 100 + np.random.default_rng(runs).standard_normal(runs)
    return found


def decision_s() -> float:
    """Return the seconds of one monitor's decision after 100 runs."""
    found = []
    for value in series(50):
        monitor = Monitor()
        for earlier in series(99):
            monitor.update(float(earlier))
        found.append(best_of(1, partial(monitor.update, float(value))))
    return min(found)


def histories_s() -> dict[int, float]:
    """Return the seconds of the history rule by length of the series."""
    return {n: best_of(10, partial(history, list(series(n)))) for n in LENGTHS}


def many_s() -> tuple[float, float]:
    """Return the seconds for 10,000 series of 100 runs: all histories, all runs judged online."""
    rows = 100 + np.random.default_rng(0).standard_normal((MANY, 100))
    whole = best_of(1, lambda: [history(list(row)) for row in rows])
    online = best_of(1, lambda: [scan(rows[:, :runs]) for runs in range(21, 101)])
    return whole, online


def main() -> None:
    """Print all times."""
    print(f"monitor: one decision after 100 runs: {decision_s() * 1e3:.2f} ms")
    for runs, seconds in histories_s().items():
        print(f"history of {runs} runs: {seconds * 1e3:.2f} ms")
    whole, online = many_s()
    print(
        f"{MANY} series of 100 runs: histories {whole:.1f} s, 80 runs of each online {online:.1f} s"
    )


if __name__ == "__main__":
    main()
