"""Why a verdict is what it is: a stable code and one sentence, and the exit code each leads to."""

from dataclasses import dataclass
from enum import StrEnum

from tracker.errors import ExitCode


class ReasonCode(StrEnum):
    """Every situation that a verdict may have to name."""

    # What was found.
    SIGNIFICANT = "significant"
    WITHIN_NOISE = "within_noise"
    SMALL_EFFECT = "small_effect"
    SUSPICIOUS = "suspicious"
    DROP_TO_ZERO = "drop_to_zero"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"
    DRIFT = "drift"
    # What stands behind it.
    SAME_CODE = "same_code"
    CLOCK_MOVED = "clock_moved"
    OTHER_DEVICE = "other_device"
    ODD_BASELINE = "odd_baseline"
    ZERO_VARIANCE = "zero_variance"
    NOISY = "noisy"
    DIRTY = "dirty"
    # What keeps it from being decided.
    NO_BASELINE = "no_baseline"
    STALE_BASELINE = "stale_baseline"
    OTHER_ENVIRONMENT = "other_environment"
    VANISHED = "vanished"
    EMPTY_RUN = "empty_run"
    NO_SAMPLE = "no_sample"
    NOT_FINITE = "not_finite"
    TOO_FEW = "too_few"
    TOO_LITTLE_HISTORY = "too_little_history"
    TOO_NOISY = "too_noisy"
    INCORRECT = "incorrect"
    ERROR = "error"
    THROTTLED = "throttled"
    OVER_PEAK = "over_peak"
    NO_COPY = "no_copy"
    SHARED_DEVICE = "shared_device"
    BUSY_MACHINE = "busy_machine"
    MACHINE_MOVED = "machine_moved"


# The exit code of an undecided verdict with this reason; those not named here give UNDECIDED.
_EXIT = {
    ReasonCode.NO_BASELINE: ExitCode.OK,
    ReasonCode.THROTTLED: ExitCode.UNFIT,
    ReasonCode.SHARED_DEVICE: ExitCode.UNFIT,
    ReasonCode.CLOCK_MOVED: ExitCode.UNFIT,
    ReasonCode.BUSY_MACHINE: ExitCode.UNFIT,
    ReasonCode.MACHINE_MOVED: ExitCode.UNFIT,
}
# These accompany a verdict and never explain an undecided one.
REMARKS = frozenset(
    {
        ReasonCode.SIGNIFICANT,
        ReasonCode.WITHIN_NOISE,
        ReasonCode.SAME_CODE,
        ReasonCode.OTHER_DEVICE,
        ReasonCode.ODD_BASELINE,
        ReasonCode.ZERO_VARIANCE,
        ReasonCode.CONFIRMED,
        ReasonCode.DISMISSED,
        ReasonCode.NOISY,
        ReasonCode.DIRTY,
    }
)
# What a reason says of a first run, alone or before what else there is to say.
NO_EARLIER = "no earlier comparable result"
BECOMES_BASE = f"{NO_EARLIER}: this one becomes the baseline"
# These ask for a new measurement of the base.
BASE_AGAIN = frozenset({ReasonCode.OTHER_ENVIRONMENT, ReasonCode.STALE_BASELINE})


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable code for machines and one sentence for people."""

    code: ReasonCode
    message: str

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that an undecided verdict with this reason leads to."""
        return ExitCode.OK if self.code in REMARKS else _EXIT.get(self.code, ExitCode.UNDECIDED)
