"""A plain change-point search for tests of pages, where a planted step is all there is to find."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Point:
    index: int
    p_value: float


def change_points(values: Sequence[float]) -> list[Point]:
    """Return where halves of the series differ by far more than they vary, split again and again."""
    data = np.asarray(values, dtype=np.float64)

    def split(start: int, end: int) -> list[Point]:
        scores = {
            i: abs(data[start:i].mean() - data[i:end].mean())
            / (
                data[start:i].std() / (i - start) ** 0.5
                + data[i:end].std() / (end - i) ** 0.5
                + 1e-9
            )
            for i in range(start + 3, end - 2)
        }
        if not scores:
            return []
        place = max(scores, key=scores.__getitem__)
        size = abs(data[place:end].mean() / data[start:place].mean() - 1)
        if scores[place] < 9 or size < 0.005:
            return []
        return [*split(start, place), Point(place, 1e-12), *split(place, end)]

    return split(0, data.size)
