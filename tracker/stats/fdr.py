"""Many comparisons at once: how small a p-value must be when a whole suite is judged."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def discoveries(p_values: Sequence[float], rate: float) -> npt.NDArray[np.bool_]:
    """Return which p-values may be called so that at most `rate` of the calls are false on average.

    Where nothing changed at all, the chance of any call is at most `rate`. Source: Benjamini and
    Hochberg, Controlling the false discovery rate, J. R. Statist. Soc. B 57 (1995); valid where
    cases that share their noise err together.
    """
    values = np.asarray(p_values, dtype=np.float64)
    return values <= threshold(p_values, rate)


def threshold(p_values: Sequence[float], rate: float) -> float:
    """Return the largest p-value that may be called, or the share of one call when none may."""
    values = np.sort(np.asarray(p_values, dtype=np.float64))
    if values.size == 0:
        return rate
    allowed = rate * np.arange(1, values.size + 1) / values.size
    good = np.flatnonzero(values <= allowed)
    return float(allowed[good[-1] if good.size else 0])
