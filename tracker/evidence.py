"""What time, cycles and copy fraction each say of head against base."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt

import numpy as np

from tracker.model import Result, Status
from tracker.sides import Side, other_device
from tracker.stats.change_point import history
from tracker.stats.compare import Comparison, compare_runs
from tracker.stats.level import fit
from tracker.stats.noise import BOARD_COPY_FRACTION, Noise, learn_from_steps, prior
from tracker.stats.shift import SHORTEST_LEVEL
from tracker.stats.summary import LogMedian, log_median


@dataclass(frozen=True, slots=True)
class Evidence:
    """One metric on both sides.

    `base` and `head` are the metric's own values (seconds, cycles, fraction of copy); `comparison`
    is in cost, so that a larger head is worse for every metric.
    """

    metric: str
    base: float
    head: float
    comparison: Comparison

    @property
    def effect(self) -> float:
        """Relative change of the metric's own value."""
        return self.head / self.base - 1

    @property
    def bandwidth_effect(self) -> float:
        """Relative change of bandwidth that the metric stands for; negative is worse."""
        return 1 / (1 + self.comparison.effect) - 1

    @property
    def bandwidth_interval(self) -> tuple[float, float]:
        """Interval of `bandwidth_effect`."""
        low, high = self.comparison.interval
        return 1 / (1 + high) - 1, 1 / (1 + low) - 1


def weigh(base: Side, head: Side, confidence: float) -> tuple[Evidence, ...]:
    """Return the evidence of each metric that both sides have, time first; empty without times."""
    if not (_measured(base.result) and _measured(head.result)):
        return ()
    extra = BOARD_COPY_FRACTION if other_device(base, head) else 0.0
    return tuple(
        evidence
        for metric, cost, board in (
            ("time", _time, 0.0),
            ("cycles", _cycles, 0.0),
            ("copy fraction", _copy_cost, extra),
        )
        if (evidence := _weigh(metric, cost, base, head, confidence, board)) is not None
    )


def _weigh(
    metric: str,
    cost: Callable[[Result], float | None],
    base: Side,
    head: Side,
    confidence: float,
    extra: float,
) -> Evidence | None:
    past = (r for r in base.history if r.status in {Status.OK, Status.NOISY})
    b, h = _level(_runs(cost, (*past, *base.runs))), _runs(cost, head.runs)
    first, last = cost(base.result), cost(head.result)
    if not first or not last:
        return None
    noise = learn_from_steps(_prior(base, head), [log(value) for value in base.earlier_s])
    if metric == "copy fraction":  # both the kernel's time and the copy's vary
        noise = replace(noise, sigma=sqrt(2) * noise.sigma)
    comparison = compare_runs(b, h, noise=noise, confidence=confidence, extra=extra)
    if metric == "copy fraction":
        first, last = 1 / first, 1 / last
    return Evidence(metric, first, last, comparison)


def _prior(base: Side, head: Side) -> Noise:
    """Return the noise to expect at the mean duration, the same either way round."""
    b, h = log_median(base.result.measurements_s), log_median(head.result.measurements_s)
    return prior(exp((b.value + h.value) / 2), base.environment.backend, max(b.spread, h.spread))


def _level(runs: list[LogMedian]) -> list[LogMedian]:
    """Return the runs of the newest level: those since the last change, spikes left out."""
    if len(runs) < SHORTEST_LEVEL:
        return runs
    values = np.array([run.value for run in runs])
    # Logarithms of seconds are far from zero and of either sign: changes are looked for in seconds.
    changes = history(list(np.exp(values - values.mean()))).changes
    recent = runs[changes[-1].index if changes else 0 :]
    if len(recent) < SHORTEST_LEVEL:
        return recent
    counts = fit(np.array([[run.value for run in recent]])).counts[0]
    return [run for run, counted in zip(recent, counts, strict=True) if counted]


def _runs(cost: Callable[[Result], float | None], results: Iterable[Result]) -> list[LogMedian]:
    """Return each run's log cost; how well it is known comes from the run's times."""
    found = []
    for result in results:
        value = cost(result)
        if value and _measured(result):
            median = log_median(result.measurements_s)
            found.append(LogMedian(log(value), median.error, median.spread, median.count))
    return found


def _measured(result: Result) -> bool:
    sample = result.measurements_s
    return bool(sample) and all(map(isfinite, sample)) and min(sample) > 0


def _time(result: Result) -> float | None:
    return exp(log_median(result.measurements_s).value) if _measured(result) else None


def _cycles(result: Result) -> float | None:
    return result.median_cycles


def _copy_cost(result: Result) -> float | None:
    seconds, copy, moved = _time(result), result.peaks.copy_bytes_per_s, result.bytes_moved
    return copy * seconds / moved if seconds and copy and moved else None
