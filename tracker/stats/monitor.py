"""The online rule: one verdict for each new run of a series.

Feed the runs of one series in commit order. The rule needs no settings: noise, spikes, drift,
autocorrelation and a timer's steps are learned from the series. `docs/how-it-decides.md` explains
it and gives its error rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt

import numpy as np

from tracker.model import VerdictKind
from tracker.reasons import Reason, ReasonCode
from tracker.stats.level import Expectation, Known, Level, expect, fit
from tracker.stats.remeasure import (
    GAIN_TRIGGER,
    LOSS_TRIGGER,
    Outcome,
    Remeasure,
    Repeats,
    Standard,
    confirm,
    repeat,
)
from tracker.stats.shift import GAP, SHORTEST_KNOWN, SHORTEST_LEVEL, WINDOWS, Shift, shifts
from tracker.stats.student import normal_tail, quantile
from tracker.units import percent

# A single run that stands out this far, or a window this close to its bar, is worth another look.
_ODD_RUN = 3.0
_CLOSE = 0.6
_SURE_DRIFT = 4.0
_TINY = 1e-300
CONFIDENCE = 0.99
"""Of the intervals."""
# Runs that count, so that what was long ago is forgotten.
REMEMBER = 200
# False alarms a run of a steady Gaussian series (`bandwatch evaluate --synthetic`).
_CALLED = 1.6e-4


@dataclass(frozen=True, slots=True)
class MonitorVerdict:
    """What the newest run of a series says.

    `effect` and its 99 % `interval` are relative to the level before; `change_at` counts the runs
    fed, from 0, and names the first run of a new level; `repeats` are the extra runs asked for.
    `p_value` of a change is the chance that a steady series looks like it at any one run.
    `worth_repeating`: with `remeasure` the run would have been measured again.
    """

    kind: VerdictKind
    reasons: tuple[Reason, ...]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    change_at: int | None = None
    noise: float | None = None
    repeats: tuple[float, ...] = ()
    worth_repeating: bool = False


def shortest_series(known: Known | None) -> int:
    """Return how many runs a level and the windows after it need."""
    return GAP + (SHORTEST_LEVEL if known is None else SHORTEST_KNOWN)


class Monitor:
    """Judges the runs of one series as they come.

    `minimal_effect` is the smallest relative change that is called. `resolution` is the smallest
    relative step that a series without any noise must show. Only the last `remember` runs count.
    """

    def __init__(
        self,
        higher_is_better: bool = True,
        *,
        minimal_effect: float = 0.005,
        resolution: float = 1e-4,
        remember: int = REMEMBER,
    ) -> None:
        self._loss = -1 if higher_is_better else 1
        self._minimal_effect = minimal_effect
        self._resolution = resolution
        self._remember = max(remember, 2 * (SHORTEST_LEVEL + GAP))
        self._values: list[float] = []
        self._known: Known | None = None
        self._fed = 0

    def update(self, value: float | None, remeasure: Remeasure | None = None) -> MonitorVerdict:
        """Take the newest run and return the verdict on it.

        `remeasure(k)` measures the same commit k more times, in fresh processes, and returns the
        values; it is asked only about suspicious runs. A value that is no positive number is told
        and left out of the series.
        """
        self._fed += 1
        flaw = self._flaw(value)
        if flaw is not None or value is None:
            return flaw or MonitorVerdict(VerdictKind.UNDECIDED, ())
        self._values = [*self._values[-self._remember + 1 :], float(value)]
        if self._constant():
            return self._exact()
        shortest = shortest_series(self._known)
        if len(self._values) < shortest:
            message = f"{len(self._values)} of the {shortest} runs that a level needs"
            return _undecided(Reason(ReasonCode.TOO_LITTLE_HISTORY, message))
        return self._judge(remeasure)

    @property
    def runs(self) -> int:
        """Number of runs that count: those since the last change, `remember` at most."""
        return len(self._values)

    @property
    def known(self) -> Known | None:
        """What the levels before this one taught about the noise."""
        return self._known

    def learn(self, values: Sequence[float]) -> None:
        """Take runs of one level without a verdict on each: positive numbers, oldest first."""
        self._fed += len(values)
        self._values = [*self._values, *map(float, values)][-self._remember :]

    def _flaw(self, value: float | None) -> MonitorVerdict | None:
        if value is None or not isfinite(value) or value < 0:
            return _undecided(Reason(ReasonCode.NOT_FINITE, f"{value} is no measurement; left out"))
        if value > 0:
            return None
        if self._loss < 0 and self._values:
            why = Reason(ReasonCode.DROP_TO_ZERO, "the value fell to zero; left out of the level")
            return MonitorVerdict(
                VerdictKind.REGRESSION, (why,), -1.0, (-1.0, -1.0), 0.0, self._fed - 1
            )
        return _undecided(Reason(ReasonCode.NOT_FINITE, "0 is no measurement; left out"))

    def _constant(self) -> bool:
        before = self._values[:-1]
        return len(before) >= SHORTEST_LEVEL and max(before) - min(before) <= 1e-12 * max(before)

    def _exact(self) -> MonitorVerdict:
        """Judge a run after runs that were all equal: any step above the resolution is real."""
        level, value = self._values[0], self._values[-1]
        effect = value / level - 1
        equal = Reason(
            ReasonCode.ZERO_VARIANCE, f"all {len(self._values) - 1} runs before are equal"
        )
        if abs(effect) <= self._resolution:
            return MonitorVerdict(
                VerdictKind.NO_CHANGE, (equal,), effect, (effect, effect), 1.0, noise=0.0
            )
        self._values = [value]
        self._known = None
        why = Reason(
            ReasonCode.SIGNIFICANT, f"{percent(effect, signed=True)} against runs without noise"
        )
        kind = self._kind(effect)
        return MonitorVerdict(kind, (why, equal), effect, (effect, effect), 0.0, self._fed - 1, 0.0)

    def _kind(self, effect: float) -> VerdictKind:
        return VerdictKind.REGRESSION if effect * self._loss > 0 else VerdictKind.IMPROVEMENT

    def _judge(self, remeasure: Remeasure | None) -> MonitorVerdict:
        rows = np.array([self._values])
        level = fit(rows[:, :-GAP])
        expected = {sign: expect(level, sign, self._known) for sign in (-1, 1)}
        seen = int(np.asarray(self._known.degrees)) if self._known else 0
        loss = shifts(rows, level, expected[self._loss], self._loss, loss=True, seen=seen)
        gain = shifts(rows, level, expected[-self._loss], -self._loss, loss=False, seen=seen)
        shift, sign = (
            (loss, self._loss) if loss.margin[0] >= gain.margin[0] else (gain, -self._loss)
        )
        if shift.margin[0] >= 0 and self._matters(shift):
            return self._called(shift, sign, level, expected[sign], remeasure)
        suspicious = False
        for side, trigger in ((self._loss, LOSS_TRIGGER), (-self._loss, GAIN_TRIGGER)):
            # Fresh runs show for themselves whether the noise is larger than it was.
            standard = self._standard(expect(level, side, self._known, restless=False))
            score = standard.score(standard.distance(self._values[-1], side), 1)
            if remeasure is not None and score >= trigger:
                again = repeat(self._values[-1], side, standard, remeasure)
                return self._measured_again(again, standard, expected[side])
            suspicious |= score >= trigger
            if score >= _ODD_RUN:
                return self._odd(shift, level, f"this run alone stands out (score {score:.1f})")
        if shift.margin[0] >= -_CLOSE and self._matters(shift):
            return self._odd(shift, level, f"the last {shift.window[0]} runs are close to a change")
        return replace(self._quiet(shift, level), worth_repeating=suspicious)

    def _matters(self, shift: Shift) -> bool:
        return bool(abs(shift.shift[0]) >= self._minimal_effect * abs(shift.expected[0]))

    def _standard(self, expected: Expectation) -> Standard:
        lag = len(self._values) - 1 - (expected.runs - 1) / 2
        return Standard(
            float(expected.at(lag)[0]),
            max(sqrt(float(expected.variance[0])), _TINY),
            float(expected.share_at(lag)[0]),
            float(expected.degrees[0]),
        )

    def _called(
        self,
        shift: Shift,
        sign: int,
        level: Level,
        expected: Expectation,
        remeasure: Remeasure | None,
    ) -> MonitorVerdict:
        """Conclude that the last runs left the level, unless fresh runs say otherwise."""
        standard = self._standard(expected)
        again = confirm(sign, standard, remeasure) if remeasure else None
        if again is not None and again.outcome is Outcome.DISMISSED:
            return _dismissed(again, standard)
        change = self._start_of_change(shift, sign)
        effect, interval = _effect_of(self._values[change:], standard)
        message = f"{percent(effect, signed=True)} since {len(self._values) - change} runs"
        reasons = [Reason(ReasonCode.SIGNIFICANT, f"{message}, score {shift.score[0]:.1f}")]
        reasons += [_confirmed(again)] if again else []
        first = self._fed - len(self._values) + change
        self._restart(expected, self._values[change:], 1 + effect)
        return MonitorVerdict(
            self._kind(effect),
            tuple(reasons),
            effect,
            interval,
            _chance(float(shift.score[0]), float(shift.margin[0])),
            first,
            _noise(level),
            again.values if again else (),
        )

    def _measured_again(
        self, again: Repeats, standard: Standard, expected: Expectation
    ) -> MonitorVerdict:
        if again.outcome is Outcome.DISMISSED:
            return _dismissed(again, standard)
        effect, interval = _effect_of(again.values, standard)
        found = MonitorVerdict(
            VerdictKind.UNDECIDED,
            (),
            effect,
            interval,
            normal_tail(again.score),
            noise=standard.sigma / abs(standard.value),
            repeats=again.values,
        )
        if again.outcome is Outcome.OPEN or abs(effect) < self._minimal_effect:
            message = f"measured {len(again.values)} times again: neither confirmed nor dismissed"
            return replace(found, reasons=(Reason(ReasonCode.SUSPICIOUS, message),))
        message = f"{percent(effect, signed=True)}, score {again.score:.1f}"
        why = Reason(ReasonCode.SIGNIFICANT, message)
        self._restart(expected, list(again.values), 1 + effect)
        return replace(
            found,
            kind=self._kind(effect),
            reasons=(why, _confirmed(again)),
            change_at=self._fed - 1,
        )

    def _odd(self, shift: Shift, level: Level, text: str) -> MonitorVerdict:
        effect, interval = _effect(shift)
        why = Reason(ReasonCode.SUSPICIOUS, f"{text}: measure again, or wait for the next runs")
        chance = normal_tail(float(shift.score[0]))
        return MonitorVerdict(
            VerdictKind.UNDECIDED,
            (why,),
            effect,
            interval,
            chance,
            noise=_noise(level),
            worth_repeating=True,
        )

    def _quiet(self, shift: Shift, level: Level) -> MonitorVerdict:
        effect, interval = _effect(shift)
        drifted = float(level.slope[0]) * level.runs / float(level.centre[0])
        kind = VerdictKind.NO_CHANGE
        why = Reason(ReasonCode.WITHIN_NOISE, f"{percent(effect, signed=True)} is within noise")
        if abs(level.drift_score[0]) >= _SURE_DRIFT and abs(drifted) >= self._minimal_effect:
            kind = VerdictKind.UNDECIDED
            message = f"a slow drift of {percent(drifted, signed=True)} over {level.runs} runs"
            why = Reason(ReasonCode.DRIFT, f"{message}, no step")
        chance = normal_tail(float(shift.score[0]))
        return MonitorVerdict(kind, (why,), effect, interval, chance, noise=_noise(level))

    def _start_of_change(self, shift: Shift, sign: int) -> int:
        """Return where the new level most likely began: the best split of the last runs."""
        recent = np.array(self._values[-2 * GAP :])
        sizes = np.arange(1, recent.size + 1)
        gains = sign * np.cumsum((recent - shift.expected[0])[::-1]) / np.sqrt(sizes)
        # Fewer runs than the smallest window cannot have called it.
        size = WINDOWS[0] + int(np.argmax(gains[WINDOWS[0] - 1 :]))
        return len(self._values) - size

    def _restart(self, expected: Expectation, values: list[float], scale: float) -> None:
        """Begin a new level, keeping what the old one taught about the noise."""
        variance = float(expected.variance[0]) * scale**2
        degrees = min(float(expected.degrees[0]), 40.0)
        self._known = Known(variance, degrees, float(expected.correlation[0]))
        self._values = values


def _chance(score: float, margin: float) -> float:
    """Return how often a steady series is called with such a score, a run.

    At the bar it is what the simulations show; beyond it falls as the normal tail does.
    """
    bar = normal_tail(score - margin)
    return _CALLED * normal_tail(score) / bar if bar > 0 else 0.0


def _undecided(reason: Reason) -> MonitorVerdict:
    return MonitorVerdict(VerdictKind.UNDECIDED, (reason,))


def _dismissed(again: Repeats, standard: Standard) -> MonitorVerdict:
    effect, interval = _effect_of(again.values, standard)
    message = f"suspicious, measured {len(again.values)} times again: not there"
    return MonitorVerdict(
        VerdictKind.NO_CHANGE,
        (Reason(ReasonCode.DISMISSED, message),),
        effect,
        interval,
        noise=standard.sigma / abs(standard.value),
        repeats=again.values,
    )


def _noise(level: Level) -> float:
    return sqrt(float(level.variance[0])) / abs(float(level.centre[0]))


def _confirmed(again: Repeats) -> Reason:
    return Reason(ReasonCode.CONFIRMED, f"measured {len(again.values)} times again: still there")


def _effect(shift: Shift) -> tuple[float, tuple[float, float]]:
    return _relative(
        float(shift.shift[0]),
        float(shift.error[0]),
        float(shift.degrees[0]),
        float(shift.expected[0]),
    )


def _effect_of(values: Sequence[float], standard: Standard) -> tuple[float, tuple[float, float]]:
    if not values:
        return 0.0, (-1.0, 1.0)
    error = standard.sigma * sqrt(1 / len(values) + standard.level_share)
    return _relative(
        float(np.mean(values)) - standard.value, error, standard.degrees, standard.value
    )


def _relative(
    shift: float, error: float, degrees: float, level: float
) -> tuple[float, tuple[float, float]]:
    reach = quantile((1 - CONFIDENCE) / 2, degrees) * error
    return shift / level, ((shift - reach) / level, (shift + reach) / level)
