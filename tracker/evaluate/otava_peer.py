"""Apache Otava's side of `peer`, in an environment of its own.

Run by `python -m tracker.evaluate.peer --otava PYTHON`, whose interpreter has `apache-otava` and
nothing of ours: Otava pins a NumPy that does not fit this project. Takes one question as JSON on
standard input and prints the answer as JSON.
"""

import json
import sys
from time import perf_counter
from typing import Any


def timed(question: dict[str, Any]) -> list[float]:
    """Return the seconds of a whole analysis of each series, the best of several."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]

    found = []
    for series in question["series"]:
        best = float("inf")
        for _ in range(3 if len(series) > 1000 else 20):
            start = perf_counter()
            compute_change_points(series)
            best = min(best, perf_counter() - start)
        found.append(best)
    return found


def first_alarms(question: dict[str, Any]) -> list[int | None]:
    """Return after how many runs of each series Otava first tells a change, None for never.

    Series grow run by run, as they do for the monitor; a change before run `place` counts for
    nothing.
    """
    from otava.analysis import compute_change_points

    found: list[int | None] = []
    for series in question["series"]:
        alarm = None
        for runs in range(question["begin"], len(series) + 1):
            strong, _ = compute_change_points(series[:runs])
            if any(point.index >= question["place"] for point in strong):
                alarm = runs
                break
        found.append(alarm)
    return found


def main() -> int:
    """Answer the question on standard input."""
    question = json.load(sys.stdin)
    answer = {"timed": timed, "first_alarms": first_alarms}[question["ask"]](question)
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
