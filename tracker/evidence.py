"""What time, cycles and copy fraction each say of head against base."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt

from tracker.model import Result
from tracker.sides import Earlier, Side, other_device
from tracker.stats.against import Past, Standing, against, past_of, pasts_of
from tracker.stats.compare import Comparison
from tracker.stats.noise import BOARD_COPY_FRACTION, Noise, prior, quieter
from tracker.stats.summary import LogMedian, log_median, median_error


@dataclass(frozen=True, slots=True)
class Evidence:
    """One metric on both sides.

    `base` and `head` are the metric's own values (seconds, cycles, fraction of copy); `standing` is
    in cost, so that a larger head is worse for every metric.
    """

    metric: str
    base: float
    head: float
    standing: Standing

    @property
    def comparison(self) -> Comparison:
        """Head against base, in cost."""
        return self.standing.comparison

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


@dataclass(frozen=True, slots=True)
class _Metric:
    """A cost of a result."""

    name: str
    of_result: Callable[[Result], float | None]


def weigh(
    base: Side, head: Side, confidence: float, quietness: float = 1.0
) -> tuple[Evidence, ...]:
    """Return the evidence of each metric that both sides have, time first; empty without times.

    `quietness` scales the noise that is expected before any was seen.
    """
    if not (_measured(base.result) and _measured(head.result)):
        return ()
    if not base.pasts:
        (base,) = with_pasts([base])
    extra = BOARD_COPY_FRACTION if other_device(base, head) else 0.0
    return tuple(
        evidence
        for metric, board in ((_TIME, 0.0), (_CYCLES, 0.0), (_COPY, extra))
        if (evidence := _weigh(metric, base, head, confidence, board, quietness)) is not None
    )


def _weigh(
    metric: _Metric, base: Side, head: Side, confidence: float, extra: float, quietness: float
) -> Evidence | None:
    first, last = metric.of_result(base.result), metric.of_result(head.result)
    if not first or not last:
        return None
    noise = quieter(expected_noise(base, head), quietness)
    if metric is _COPY:  # both the kernel's time and the copy's vary
        noise = replace(noise, sigma=sqrt(2) * noise.sigma)
    standing = against(
        _runs(metric.of_result, base.runs),
        _runs(metric.of_result, head.runs),
        base.pasts[metric.name],
        noise=noise,
        confidence=confidence,
        extra=extra,
    )
    if metric is _COPY:
        first, last = 1 / first, 1 / last
    return Evidence(metric.name, first, last, standing)


def with_pasts(bases: Sequence[Side]) -> list[Side]:
    """Return the sides with what their histories say, all looked at together: much quicker."""
    boards = [(number, board) for number, base in enumerate(bases) for board in base.elsewhere]
    histories = [_costs(base.history) for base in bases]
    histories += [_costs(board) for _, board in boards]
    found: list[dict[str, Past]] = [{} for _ in bases]
    for place, metric in enumerate(_METRICS):
        pasts = pasts_of([costs[place] for costs in histories])
        for known, past in zip(found, pasts, strict=False):
            known[metric.name] = past
        for (number, _), past in zip(boards, pasts[len(bases) :], strict=True):
            if past.newest is not None:
                own = found[number][metric.name]
                levels = (*own.elsewhere, past.newest)
                found[number][metric.name] = replace(own, elsewhere=levels)
    return [replace(base, pasts=pasts) for base, pasts in zip(bases, found, strict=True)]


def expected_noise(base: Side, head: Side) -> Noise:
    """Return the noise to expect at the mean duration, the same either way round."""
    b, h = log_median(base.result.measurements_s), log_median(head.result.measurements_s)
    return prior(exp((b.value + h.value) / 2), base.environment.backend, max(b.spread, h.spread))


def distance(base: Side, head: Side) -> float | None:
    """Return how far apart the two times are in units of the expected noise of their ratio."""
    if not (_measured(base.result) and _measured(head.result)):
        return None
    apart = log_median(head.result.measurements_s).value
    apart -= log_median(base.result.measurements_s).value
    return apart / (sqrt(2) * expected_noise(base, head).sigma)


def copy_standing(base: Side, head: Side) -> Standing | None:
    """Return how the copy measured beside head, of the case's bytes, stands to earlier runs'.

    None where too few earlier runs show how restless copies are, without a copy on both sides, and
    on a GPU: nobody shares that, and its copy moves by a percent with what else was allocated.
    """
    runs = (*base.runs, *head.runs)
    if base.environment.backend != "cpu" or not all(run.peaks.copy_bytes_per_s for run in runs):
        return None
    past = past_of(_copies(base.history))
    if past.newest is None:
        return None
    noise = expected_noise(base, head)
    return against(_runs(_copy_s, base.runs), _runs(_copy_s, head.runs), past, noise=noise)


def _copies(history: Iterable[Earlier]) -> list[LogMedian]:
    """Return each run's log of the copy's time for the bytes of the case, where known."""
    return [
        LogMedian(log(earlier.time_s / earlier.copy_cost), 0.0, 0.0, 1)
        for earlier in history
        if earlier.copy_cost and isfinite(earlier.time_s) and earlier.time_s > 0
    ]


def _costs(history: Iterable[Earlier]) -> tuple[list[LogMedian], ...]:
    """Return the log cost of each run by each metric, where known."""
    found: tuple[list[LogMedian], ...] = tuple([] for _ in _METRICS)
    for earlier in history:
        spread = earlier.spread if isfinite(earlier.spread) else 0.0
        error = median_error(spread, earlier.count)
        costs = (earlier.time_s, earlier.cycles, earlier.copy_cost)
        for column, value in zip(found, costs, strict=True):
            if value and isfinite(value):
                column.append(LogMedian(log(value), error, spread, earlier.count))
    return found


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


def _copy_s(result: Result) -> float | None:
    copy, moved = result.peaks.copy_bytes_per_s, result.bytes_moved
    return moved / copy if copy and moved else None


_TIME = _Metric("time", _time)
_CYCLES = _Metric("cycles", _cycles)
_COPY = _Metric("copy fraction", _copy_cost)
# In the order of `_costs`.
_METRICS = (_TIME, _CYCLES, _COPY)
