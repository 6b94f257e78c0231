"""Which of many series the monitor must judge run by run: a quick look at all of them together.

What is let go here is quiet at its newest run: no window and no single run comes near a bar, there
is no certain drift, and no earlier change of level can have hidden one.
"""

import numpy as np

from tracker.stats.level import Array, Mask, expect, fit
from tracker.stats.screen import may_change
from tracker.stats.shift import GAP, shifts

# Below the monitor's own triggers, so that nothing is lost to another estimate of the noise.
_ODD, _NEAR, _DRIFT = 1.4, 1.5, 3.0


def worth_a_look(rows: Array) -> Mask:
    """Return which rows (S, n) of S series of n runs may be more than quiet at their last run."""
    level = fit(rows[:, :-GAP])
    found = may_change(rows) | (level.variance <= 0) | (np.abs(level.drift_score) >= _DRIFT)
    for sign in (-1, 1):
        near = shifts(rows, level, expect(level, sign), sign, loss=True).margin >= -_NEAR
        steady = expect(level, sign, restless=False)
        lag = rows.shape[1] - 1 - (steady.runs - 1) / 2
        apart = sign * (rows[:, -1] - steady.at(lag))
        # Rows without any noise are looked at above.
        odd = apart >= _ODD * np.sqrt(np.maximum(steady.variance, 1e-300))
        found |= near | odd
    return found
