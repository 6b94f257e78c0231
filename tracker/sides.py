"""One side of a comparison, and what is wrong with it before any statistics."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from math import isfinite

from tracker.model import Checkout, Device, Environment, Result, Status
from tracker.reasons import Reason, ReasonCode
from tracker.stats.against import Past
from tracker.units import bandwidth, percent


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run of a series at a glance.

    `spread` is the sample's robust standard deviation in logarithm and `count` its size; `cycles`
    and `copy_cost`, the time in units of what copying the same bytes took, are None where unknown.
    """

    time_s: float
    spread: float = 0.0
    count: int = 1
    cycles: float | None = None
    copy_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A result with everything that decides what it may be compared with.

    `repeats` are further results of the same commit from fresh processes; `history` are the usable
    runs of the series before them, oldest first, of comparable environments and the same device,
    whatever their level; `elsewhere` are the like of each other device, where these are too few to
    show the noise. `measured_at` is ISO 8601; `rule` says how this side was picked. `pasts` are
    what `history` says of a metric, by its name, where that was found out before. `in_turns`: its
    processes and the other side's took turns.
    """

    result: Result
    environment: Environment
    checkout: Checkout
    device: Device | None = None
    measured_at: str | None = None
    repeats: tuple[Result, ...] = ()
    history: tuple[Earlier, ...] = ()
    elsewhere: tuple[tuple[Earlier, ...], ...] = ()
    rule: str = ""
    pasts: Mapping[str, Past] = field(default_factory=dict)
    in_turns: bool = False

    @property
    def runs(self) -> tuple[Result, ...]:
        """The result and its repeats."""
        return (self.result, *self.repeats)


_STATUS = {
    Status.THROTTLED: (ReasonCode.THROTTLED, "was measured while the device throttled"),
    Status.INCORRECT: (
        ReasonCode.INCORRECT,
        "failed its correctness check, so its time counts for nothing",
    ),
    Status.ERROR: (ReasonCode.ERROR, "ended in an error"),
    Status.NO_SAMPLE: (ReasonCode.NO_SAMPLE, "has no measurement"),
    Status.OVER_PEAK: (ReasonCode.OVER_PEAK, "is faster than the memory allows: a measuring fault"),
}


def flaws(side: Side, name: str, min_measurements: int) -> tuple[Reason, ...]:
    """Return what makes a side ("base" or "head") unfit to be judged; empty when it is fit."""
    found = chain.from_iterable(_flaws(run, name, min_measurements) for run in side.runs)
    return tuple({reason.code: reason for reason in found}.values())


def _flaws(result: Result, name: str, min_measurements: int) -> Iterator[Reason]:
    if result.status in _STATUS:
        code, text = _STATUS[result.status]
        yield Reason(code, f"{name} {text}{_why(result)}")
        if result.status is not Status.THROTTLED:
            return
    values = result.measurements_s
    bad = [] if result.timed else [v for v in values if not isfinite(v) or v <= 0]
    if bad:
        yield Reason(
            ReasonCode.NOT_FINITE,
            f"{len(bad)} of {len(values)} measurements of {name} are no positive time ({bad[0]})",
        )
    elif not values:
        yield Reason(ReasonCode.NO_SAMPLE, f"{name} has no measurement{_why(result)}")
    elif len(values) < min_measurements:
        yield Reason(
            ReasonCode.TOO_FEW,
            f"{name} has {len(values)} measurements, need {min_measurements}: raise the sample cap",
        )
    if values and not bad:
        yield from _state_flaws(result, name)


def _state_flaws(result: Result, name: str) -> Iterator[Reason]:
    peak = result.peaks.theoretical_bytes_per_s
    rate = result.bandwidth
    # From the cache, reads may well be faster than the memory.
    if peak and rate and rate > peak and result.case.cache == "cold" and result.status is Status.OK:
        yield Reason(
            ReasonCode.OVER_PEAK,
            f"{name} claims {bandwidth(rate)}, {percent(rate / peak)} of the theoretical peak: "
            "a measuring fault",
        )
    others = max(
        (s.other_processes or 0 for s in (result.before, result.during, result.after) if s),
        default=0,
    )
    if others:
        yield Reason(
            ReasonCode.SHARED_DEVICE,
            f"{others} other processes used the device while {name} was measured",
        )


def _why(result: Result) -> str:
    found = (result.reasons.get("measurements_s"), result.reasons.get("status"))
    # What is wrong says more than that its test failed of it.
    detail = result.correctness.detail
    wrong = result.status is Status.INCORRECT
    text = next(filter(None, (detail, *found) if wrong else (*found, detail)), None)
    return f": {text}" if text else ""


def remarks(base: Side, head: Side) -> Iterator[Reason]:
    """Yield what a reader must know of two fit sides."""
    for name, side in (("base", base), ("head", head)):
        sample = side.result.measurements_s
        if sample and sample == sample[:1] * len(sample):
            yield Reason(
                ReasonCode.ZERO_VARIANCE,
                f"all {len(sample)} measurements of {name} are equal: "
                "the timer is coarse or the times are made up",
            )
        if side.result.status is Status.NOISY:
            yield Reason(
                ReasonCode.NOISY, f"{name} did not reach its precision goal{_why(side.result)}"
            )
        if side.checkout.dirty:
            yield Reason(ReasonCode.DIRTY, f"{name} was measured with uncommitted changes")


def environment_difference(base: Environment, head: Environment) -> tuple[str, ...]:
    """Return where two environments may not differ and do, each as `field: base -> head`."""
    if base == head:
        return ()
    a, b = _flat(base.matters()), _flat(head.matters())
    return tuple(
        f"{key}: {a.get(key)} -> {b.get(key)}"
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    )


def _flat(fields: dict[str, object]) -> dict[str, object]:
    libraries = fields.pop("libraries")
    named = libraries.items() if isinstance(libraries, dict) else ()
    return fields | {f"libraries.{name}": version for name, version in named}


def age_days(base: Side, head: Side) -> float | None:
    """Return how many days before head the base was measured, None where a time is missing."""
    if base.measured_at is None or head.measured_at is None:
        return None
    parse: Callable[[str], datetime] = datetime.fromisoformat
    return (parse(head.measured_at) - parse(base.measured_at)).total_seconds() / 86400


def other_device(base: Side, head: Side) -> bool:
    """Return whether both devices are known and not the same one."""
    return (
        base.device is not None and head.device is not None and base.device.uuid != head.device.uuid
    )
