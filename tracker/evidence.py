"""What time, cycles and copy fraction each say of head against base."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt

from tracker.model import Result
from tracker.sides import Earlier, Side, other_device
from tracker.stats.against import Past, Standing, against, past_of, pasts_of
from tracker.stats.compare import Comparison
from tracker.stats.noise import BOARD_COPY_FRACTION, Noise, heavy_tailed, prior, quieter
from tracker.stats.shift import SHORTEST_LEVEL
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
class _Run:
    """A result with times, and what they say."""

    result: Result
    median: LogMedian


@dataclass(frozen=True, slots=True)
class _Metric:
    """A cost of a run."""

    name: str
    of_run: Callable[[_Run], float | None]


def weigh(
    base: Side, head: Side, confidence: float, quietness: float = 1.0
) -> tuple[Evidence, ...]:
    """Return the evidence of each metric that both sides have, time first; empty without times.

    `quietness` scales the noise that is expected before any was seen.
    """
    if not (base.result.timed and head.result.timed):
        return ()
    if not base.pasts:
        (base,) = with_pasts([base])
    extra = BOARD_COPY_FRACTION if other_device(base, head) else 0.0
    noise = quieter(expected_noise(base, head), quietness)
    if unknown_cpu(base):
        noise = heavy_tailed(noise, quietness)
    before, after = _runs(base), _runs(head)
    return tuple(
        evidence
        for metric, board in ((_TIME, 0.0), (_CYCLES, 0.0), (_COPY, extra))
        if (
            evidence := _weigh(
                metric, before, after, base.pasts[metric.name], noise, confidence, board
            )
        )
        is not None
    )


def _weigh(
    metric: _Metric,
    before: Sequence[_Run],
    after: Sequence[_Run],
    past: Past,
    noise: Noise,
    confidence: float,
    extra: float,
) -> Evidence | None:
    first, last = metric.of_run(before[0]), metric.of_run(after[0])
    if not first or not last:
        return None
    if metric is _COPY:  # both the kernel's time and the copy's vary
        noise = Noise(sqrt(2) * noise.sigma, noise.degrees, noise.source)
    standing = against(
        _costs_of(metric, before),
        _costs_of(metric, after),
        past,
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


def goes_along(effect: float, other: float) -> bool:
    """Return whether another effect goes the same way and explains at least half of `effect`."""
    return other * effect > 0 and abs(other) >= abs(effect) / 2


def expected_noise(base: Side, head: Side) -> Noise:
    """Return the noise to expect at the mean duration, the same either way round."""
    b, h = log_median(base.result.measurements_s), log_median(head.result.measurements_s)
    return prior(exp((b.value + h.value) / 2), base.environment.backend, max(b.spread, h.spread))


def unknown_cpu(base: Side) -> bool:
    """Return whether base is of a CPU whose earlier runs are too few to show how restless it is.

    In turns it does not matter: what moves one session from the next moves both sides alike.
    """
    if base.environment.backend != "cpu" or base.in_turns:
        return False
    past = base.pasts.get(_TIME.name)
    return past.newest is None if past else len(base.history) < SHORTEST_LEVEL


def distance(base: Side, head: Side) -> float | None:
    """Return how far apart the two times are in units of the expected noise of their ratio."""
    if not (base.result.timed and head.result.timed):
        return None
    apart = log_median(head.result.measurements_s).value
    apart -= log_median(base.result.measurements_s).value
    return apart / (sqrt(2) * expected_noise(base, head).sigma)


def copy_standing(base: Side, head: Side) -> Standing | None:
    """Return how the copy measured beside head, of the case's bytes, stands to earlier runs'.

    Where too few show how restless copies are it has no level and counts as it is. None without a
    copy on both sides, and on a GPU: nobody shares that, and its copy moves by a percent with what
    else was allocated.
    """
    runs = (*base.runs, *head.runs)
    if base.environment.backend != "cpu" or not all(run.peaks.copy_bytes_per_s for run in runs):
        return None
    past = past_of(_copies(base.history))
    if past.newest is None and not unknown_cpu(base):
        return None
    noise = expected_noise(base, head)
    before, after = (_costs_of(_COPY_TIME, _runs(side)) for side in (base, head))
    return against(before, after, past, noise=noise)


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


def _runs(side: Side) -> list[_Run]:
    """Return the runs of a side that have times."""
    return [_Run(run, log_median(run.measurements_s)) for run in side.runs if run.timed]


def _costs_of(metric: _Metric, runs: Iterable[_Run]) -> list[LogMedian]:
    """Return each run's log cost; how well it is known comes from the run's times."""
    return [
        LogMedian(log(value), run.median.error, run.median.spread, run.median.count)
        for run in runs
        if (value := metric.of_run(run))
    ]


def _time(run: _Run) -> float:
    return exp(run.median.value)


def _cycles(run: _Run) -> float | None:
    return run.result.median_cycles


def _copy_cost(run: _Run) -> float | None:
    copy, moved = run.result.peaks.copy_bytes_per_s, run.result.bytes_moved
    return copy * _time(run) / moved if copy and moved else None


def _copy_s(run: _Run) -> float | None:
    copy, moved = run.result.peaks.copy_bytes_per_s, run.result.bytes_moved
    return moved / copy if copy and moved else None


_TIME = _Metric("time", _time)
_CYCLES = _Metric("cycles", _cycles)
_COPY = _Metric("copy fraction", _copy_cost)
_COPY_TIME = _Metric("time of the copy", _copy_s)
# In the order of `_costs`.
_METRICS = (_TIME, _CYCLES, _COPY)
