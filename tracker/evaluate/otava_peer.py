"""Times Apache Otava on the series of `speed`, in an environment of its own.

Run by `python -m tracker.evaluate.speed --otava PYTHON`, whose interpreter has `apache-otava` and
nothing of ours: Otava pins a NumPy that does not fit this project. Prints seconds as JSON.
"""

import json
import sys
from time import perf_counter

import numpy as np


def main(argv: list[str]) -> int:
    """Time one whole analysis per length, the best of several, and print them."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]

    timed = {}
    for length in map(int, argv):
        # A list: 0.8.0 raises on arrays longer than its window.
        series = (100 + np.random.default_rng(length).standard_normal(length)).tolist()
        best = float("inf")
        for _ in range(3 if length > 1000 else 20):
            start = perf_counter()
            compute_change_points(series)
            best = min(best, perf_counter() - start)
        timed[length] = best
    print(json.dumps(timed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
