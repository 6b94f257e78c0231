"""Which of many series the monitor must judge run by run: a quick look at all of them together.

What is let go here is quiet at its newest run: no window and no single run comes near a bar, there
is no certain drift, and no earlier change of level can have hidden one.
"""

from dataclasses import dataclass

import numpy as np

from tracker.stats.change_point import changes_in
from tracker.stats.level import Array, Mask, expect, fit
from tracker.stats.screen import may_change
from tracker.stats.shift import GAP, shifts

# Below the monitor's own triggers, so that nothing is lost to another estimate of the noise.
_ODD = {-1: 1.5, 1: 2.7}
_NEAR, _DRIFT = 1.0, 3.5


@dataclass(frozen=True, slots=True)
class Look:
    """Rows that are worth the monitor's verdict, and of these the ones whose level changed before.

    The others can be judged from the level that all but their last runs have.
    """

    worth: Mask
    unsettled: Mask


def look(rows: Array) -> Look:
    """Return which rows (S, n) of S series of n runs may be more than quiet at their last run."""
    level = fit(rows[:, :-GAP])
    unsettled = level.variance <= 0
    for row in np.flatnonzero(may_change(rows)).tolist():
        changes = changes_in(rows[row])
        unsettled[row] |= any(change.index < rows.shape[1] - 2 * GAP for change in changes)
    found = unsettled | (np.abs(level.drift_score) >= _DRIFT)
    for sign, odd in _ODD.items():
        near = shifts(rows, level, expect(level, sign), sign, loss=sign < 0).margin >= -_NEAR
        steady = expect(level, sign, restless=False)
        lag = rows.shape[1] - 1 - (steady.runs - 1) / 2
        apart = sign * (rows[:, -1] - steady.at(lag))
        # Rows without any noise are looked at above.
        found |= near | (apart >= odd * np.sqrt(np.maximum(steady.variance, 1e-300)))
    return Look(found, unsettled)
