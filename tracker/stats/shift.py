"""Whether the last few runs of a series left its level, for many series at once.

Each of the windows of the last 3, 4 and 5 runs is held against the level of the runs before the
last five. Runs far from the window's own median do not count, and three that count are needed: one
or two spikes are no step. A score is a t statistic told as the normal quantile of the same
probability, so that short histories and long ones are on one scale.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracker.stats.level import Array, Expectation, Level, Mask, expect, fit, inflation

WINDOWS = (3, 4, 5)
GAP = WINDOWS[-1]
# Runs below which a series has no level yet.
SHORTEST_LEVEL = 8
# The same after a change, when the noise is known from before it.
SHORTEST_KNOWN = 3
# Within a window, runs this many standard deviations from its median do not count.
_STRAY = 4.0
# A window whose own variance is this many times the level's is judged by its own.
_RESTLESS = 3.0
# The last runs of the level must agree that there is a step, by a lesser score.
_NEAR_RUNS = 20
_NEAR_SCORE = 2.6
_TINY = 1e-150

# The score at which a loss is called, by counted runs (3, 4, 5) and length of the series. Chosen by
# simulation (`bandwatch evaluate --synthetic`): a young series, its noise hardly known, must be
# clearer; around 40 runs three of four drops of two standard deviations are found within five runs;
# what a longer history adds in knowledge goes into fewer false alarms.
_AGES = (20.0, 35.0, 39.0, 47.0, 57.0, 70.0, 100.0)
_BARS = {
    3: (5.6, 5.4, 5.2, 5.0, 5.0, 5.0, 5.0),
    4: (5.5, 5.2, 4.9, 4.6, 4.6, 4.6, 4.6),
    5: (5.0, 4.3, 3.06, 3.06, 3.38, 3.76, 4.01),
}
# A gain harms nobody while it waits for more evidence, so it gets little of the false-alarm budget.
_GAIN_BAR = 5.5


@dataclass(frozen=True, slots=True)
class Shift:
    """The strongest window of each series, for a move towards one side.

    `margin` is its score less the bar, so 0 or more calls the shift; -inf where three runs do not
    agree. `shift` and `error` are in the series' unit, `expected` is the value without a shift.
    """

    margin: Array
    score: Array
    shift: Array
    error: Array
    degrees: Array
    expected: Array
    window: npt.NDArray[np.intp]


def shifts(
    rows: Array,
    level: Level,
    expected: Expectation,
    sign: int,
    *,
    loss: bool,
    seen: int | npt.NDArray[np.intp] = 0,
) -> Shift:
    """Return the evidence that the last runs of each row moved towards `sign` (+1 up, -1 down).

    `level` is of the rows without their last `GAP` runs, `expected` of the level. `loss` sets the
    bar of a loss, else that of a gain. `seen` counts runs before the rows that taught about the
    noise, of all rows or each, then of none or every one; with them the level may be shorter than
    `SHORTEST_LEVEL`.
    """
    near = None if np.any(seen) else _near(rows, level)
    found = [_window(rows, m, sign, expected, near) for m in WINDOWS]
    score, counted, shift, error, degrees, value = (
        np.stack(column, axis=1) for column in zip(*found, strict=True)
    )
    margin = score - bars(counted, rows.shape[1] + seen, loss=loss)
    margin[counted < WINDOWS[0]] = -np.inf
    best = np.argmax(margin, axis=1)
    pick = np.arange(rows.shape[0]), best
    return Shift(
        margin[pick],
        score[pick],
        shift[pick],
        error[pick],
        degrees[pick],
        value[pick],
        np.array(WINDOWS)[best],
    )


def scan(rows: Array, *, loss_sign: int = -1) -> tuple[Mask, Mask]:
    """Return which rows the last run makes a loss, and which a gain, of steady series.

    This is the monitor's rule for many series at once, without its memory and its re-measurement.
    """
    level = fit(rows[:, :-GAP])
    loss = shifts(rows, level, expect(level, loss_sign), loss_sign, loss=True)
    gain = shifts(rows, level, expect(level, -loss_sign), -loss_sign, loss=False)
    return loss.margin >= 0, gain.margin >= 0


def bars(counted: Array, runs: int | npt.NDArray[np.intp], *, loss: bool) -> Array:
    """Return the score needed of windows (S, w) in which `counted` runs agree.

    `runs` is the length of the series, of all or of each.
    """
    table = np.array([np.interp(np.atleast_1d(runs), _AGES, _BARS[m]) for m in WINDOWS])
    place = np.clip(counted - WINDOWS[0], 0, len(WINDOWS) - 1).astype(np.intp)
    found = table[place, np.arange(table.shape[1])[:, None]]
    return found if loss else np.maximum(found, _GAIN_BAR)


def normal_score(t: Array, degrees: Array) -> Array:
    """Return the normal quantile that is as improbable as a t statistic."""
    # Late: SciPy takes a tenth of a second to load, and only long series ask for it.
    from scipy.special import ndtri, stdtr

    return np.asarray(-ndtri(np.maximum(stdtr(degrees, -t), _TINY)))


def _window(
    rows: Array, size: int, sign: int, expected: Expectation, near: tuple[Array, ...] | None
) -> tuple[Array, ...]:
    """Return score, counted runs, shift, its error, degrees of freedom and expected value."""
    window = rows[:, -size:]
    middle = np.median(window, axis=1)
    counts = np.abs(window - middle[:, None]) <= _STRAY * np.sqrt(expected.variance)[:, None]
    counted = counts.sum(axis=1).astype(np.float64)
    n = np.maximum(counted, 1)
    mean = (window * counts).sum(axis=1) / n
    squares = (((window - mean[:, None]) * counts) ** 2).sum(axis=1)
    degrees = expected.degrees + n - 1
    pooled = (expected.degrees * expected.variance + squares) / degrees
    own = squares / np.maximum(n - 1, 1)
    restless = own > _RESTLESS * expected.variance
    stretch = inflation(expected.correlation, size)
    of_window = np.where(restless, own, pooled) * stretch / n
    lag = rows.shape[1] - 1 - (size - 1) / 2 - (expected.runs - 1) / 2
    of_level = pooled * expected.share_at(lag)
    error = np.sqrt(of_window + of_level) + _TINY
    if restless.any():  # Welch and Satterthwaite
        welch = error**4 / (of_window**2 / np.maximum(n - 1, 1) + of_level**2 / degrees + _TINY)
        degrees = np.where(restless, welch, degrees)
    value = expected.at(lag)
    score = normal_score(sign * (mean - value) / error, degrees)
    if near is not None:
        doubtful = _near_score(mean, n, squares, stretch, sign, near) < _NEAR_SCORE
        score = np.where(doubtful, np.minimum(score, 0.0), score)
    return score, counted, mean - value, error, degrees, value


def _near(rows: Array, level: Level) -> tuple[Array, ...]:
    """Return mean, squared deviations and count of the level's last runs, spikes left out."""
    last = min(_NEAR_RUNS, level.runs)
    counts = level.counts[:, -last:]
    n = np.maximum(counts.sum(axis=1), 2).astype(np.float64)
    values = rows[:, level.runs - last : level.runs]
    mean = (values * counts).sum(axis=1) / n
    return mean, (((values - mean[:, None]) * counts) ** 2).sum(axis=1), n


def _near_score(
    mean: Array, n: Array, squares: Array, stretch: Array, sign: int, near: tuple[Array, ...]
) -> Array:
    centre, spread, runs = near
    degrees = runs + n - 2
    variance = (spread + squares) / degrees
    error = np.sqrt(variance * (stretch / n + 1 / runs)) + _TINY
    return normal_score(sign * (mean - centre) / error, degrees)
