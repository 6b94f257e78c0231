"""The table of error rates: each figure with its goal, by seeded simulation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from tracker.evaluate import noises
from tracker.evaluate.noises import NOISES, Noise
from tracker.evaluate.protocol import (
    CASES,
    PAST,
    false_alarms,
    false_changes,
    found,
    noticed,
    placed,
    retracted,
    suites,
    watch,
)
from tracker.evaluate.share import interval
from tracker.model import VerdictKind
from tracker.stats.monitor import Monitor


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured rate; `most` or `least` is its goal, None where there is none."""

    rule: str
    noise: str
    what: str
    value: float
    series: int
    unit: str = "share"
    most: float | None = None
    least: float | None = None

    @property
    def between(self) -> tuple[float, float] | None:
        """Its 95 % interval, None where the value is no share of the series."""
        if self.unit != "share" or not 0 <= self.value <= 1:
            return None
        return interval(round(self.value * self.series), self.series)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met, None without one."""
        if self.most is not None:
            return self.value <= self.most
        return self.value >= self.least if self.least is not None else None


# Cases of a small suite.
SMALL = 20
FALSE = "false alarms per 100 runs"
Part = Callable[[Generator, int], Iterator[Figure]]


def figures(seed: int, series: int) -> Iterator[Figure]:
    """Yield the figures of all rules, at least `series` series behind each.

    Every part has a random stream of its own, so that one can be repeated alone.
    """
    for number, part in enumerate(parts()):
        yield from part(np.random.default_rng([seed, number]), series)


def parts() -> tuple[Part, ...]:
    """Return the parts of the table, each a function of a generator and the number of series."""
    online = tuple(partial(_online, name, noise) for name, noise in NOISES.items())
    return (*online, _zero_variance, _monitor, _repeated, _history, _gate)


def _online(name: str, noise: Noise, rng: Generator, series: int) -> Iterator[Figure]:
    gaussian = noise is noises.gaussian
    # Rare events need many series; one scan judges all of them at once.
    many = max(series, 20_000 if gaussian and series >= 500 else 10 * series)
    figure = partial(Figure, "monitor", name)
    rate = false_alarms(noise, rng, many)
    yield figure(FALSE, rate, many, unit="rate", most=0.02 if gaussian else 0.1)
    small, large = (float(found(noise, rng, many, drop)[-1]) for drop in (0.02, 0.05))
    yield figure("2 % drop found within 5 runs", small, many, least=0.75 if gaussian else None)
    yield figure("5 % drop found within 5 runs", large, many, least=0.8)


def _zero_variance(rng: Generator, series: int) -> Iterator[Figure]:
    figure = partial(Figure, "monitor", "zero variance")
    clean = watch(noises.constant, rng, min(series, 50), remeasure=False)
    yield figure(FALSE, clean.false_alarms, min(series, 50), unit="rate", most=0.0)
    called = 0
    for drop in rng.uniform(0.0002, 0.05, series):
        monitor = Monitor()
        for _ in range(PAST):
            monitor.update(100.0)
        called += monitor.update(100.0 * (1 - drop)).kind is VerdictKind.REGRESSION
    yield figure("0.02-5 % drop found at the first run", called / series, series, least=1.0)


def _monitor(rng: Generator, series: int) -> Iterator[Figure]:
    """Judge run by run, alarms after alarms included, to check the scan of many series."""
    figure = partial(Figure, "monitor, run by run")
    for name, noise in (("Gaussian", noises.gaussian), ("downward spikes", noises.spikes)):
        rate = watch(noise, rng, series, remeasure=False).false_alarms
        yield figure(name, FALSE, rate, series, unit="rate")


def _repeated(rng: Generator, series: int) -> Iterator[Figure]:
    figure = partial(Figure, "monitor with re-measurement", "Gaussian", series=series)
    clean = watch(noises.gaussian, rng, series, remeasure=True)
    yield figure(FALSE, value=clean.false_alarms, unit="rate", most=0.01)
    extra = partial(figure, unit="a run")
    yield extra("extra runs, each repeat counted", value=clean.extra_runs, most=0.08)
    yield extra("runs that are measured again", value=clean.asked, most=0.08)
    for drop, least in ((0.02, 0.5), (0.05, 0.98)):
        first = float(noticed(noises.gaussian, rng, series, drop, remeasure=True)[0])
        yield figure(
            f"{drop:.0%} drop found at the first run".replace("%", " %"), value=first, least=least
        )


def _history(rng: Generator, series: int) -> Iterator[Figure]:
    # An exact index is found in 64 % at best, so the goal of 63 % takes many series to tell apart.
    count = max(4 * series, 20_000) if series >= 500 else 4 * series
    figure = partial(Figure, "history", series=series)
    many = partial(Figure, "history", series=count)
    step = placed(noises.gaussian, rng, count, 0.02)
    yield many("Gaussian", "2 % step: exact index", value=step.exact, least=0.63)
    yield many("Gaussian", "2 % step: within two runs", value=step.within_two, least=0.94)
    yield many("Gaussian", "2 % step: further change points", value=step.extra, unit="count")
    goals = {
        "Gaussian": 0.01,
        "AR(1) 0.5": 0.05,
        "heavy tails, t(3)": None,
        "downward spikes": None,
    }
    for name, most in goals.items():
        share, _ = false_changes(NOISES[name], rng, count)
        yield many(name, "clean series with a change point", value=share, most=most)
    for name in ("drift, 2 % in 100 runs", "drift, 5 % in 100 runs"):
        steps, drifts = false_changes(NOISES[name], rng, series)
        yield figure(name, "told as a drift", value=drifts)
        yield figure(name, "told as steps", value=steps)
    some = max(20, series // 10)
    for drop in (0.0, 0.05):
        told, gone = retracted(noises.gaussian, rng, some, drop)
        what = f"{drop:.0%} step, run by run: ".replace("%", " %")
        yield Figure(
            "history", "Gaussian", what + "change points told a series", told, some, "count"
        )
        yield Figure("history", "Gaussian", what + "of them retracted", gone, some, "count")


def _gate(rng: Generator, series: int) -> Iterator[Figure]:
    """Judge whole suites, one run each against a level of 20 runs; a tenth of them for drops."""
    count = max(2, min(2_000, 2 * series))
    for cases, many in ((CASES, count), (SMALL, 2 * count)):
        for name, noise in NOISES.items():
            figure = partial(Figure, f"gate, suite of {cases}", name, series=many)
            wrong, _ = suites(noise, rng, many, cases=cases)
            # One of a hundred is allowed; a few suites cannot tell one from none.
            most = max(0.01, 2 / many) if cases == CASES else None
            yield figure("unchanged suites with any call", value=wrong, most=most)
            figure = partial(figure, series=max(2, many // 10))
            for drop in (0.1, 0.3):
                _, hit = suites(noise, rng, max(2, many // 10), drop, cases)
                what = f"{drop:.0%} drop of one case found at the first run".replace("%", " %")
                yield figure(what, value=hit)
