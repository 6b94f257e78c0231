"""What an empty kernel took beside results.

It is packed with each result's readings: a series of 10,000 is read without it, and this of those
results that a person sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from tracker.store import Store
from tracker.store.codec import unpack_readings
from tracker.store.rows import chunks
from tracker.store.schema import SampleRow
from tracker.yardsticks import NEAR_FLOOR

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Floors:
    """Of results: an empty kernel's time in seconds, NaN where none was measured; launch-bound."""

    floor_s: Floats
    launch_bound: NDArray[np.bool_]


def floors(store: Store, result_ids: Sequence[int]) -> Floors:
    """Return what stood beside results, by the store's ids and in their order."""
    found: dict[int, tuple[float, bool]] = {}
    with store.reading("read empty kernels") as connection:
        for chunk in chunks(int(number) for number in result_ids):
            query = select(SampleRow.result_id, SampleRow.detail)
            rows = connection.execute(query.where(SampleRow.result_id.in_(chunk))).all()
            found |= {number: _beside(unpack_readings(detail)) for number, detail in rows}
    nothing = (np.nan, False)
    both = [found.get(int(number), nothing) for number in result_ids]
    return Floors(
        np.array([floor_s for floor_s, _ in both], np.float64),
        np.array([bound for _, bound in both], np.bool_),
    )


def _beside(readings: Mapping[str, Any]) -> tuple[float, bool]:
    floor_s = readings.get("peaks", {}).get("floor_s")
    codes = {warning["code"] for warning in readings.get("warnings", ())}
    return np.nan if floor_s is None else floor_s, NEAR_FLOOR in codes
