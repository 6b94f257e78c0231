"""Why a time was refused: the links of the chain of trust and the errors that name them.

A message says what could not be done, what was found, what was expected and what to do.
"""

from enum import StrEnum


class Link(StrEnum):
    """One link of the chain of trust, in the order in which they are tested."""

    LAUNCH = "launch"
    DEVICE = "device error"
    STREAM = "launch stream"
    COMPARE = "compare with the reference"
    GUARD = "guard zones"
    INPUTS = "inputs unchanged"
    FRESH = "fresh inputs"
    ALLOCATION = "no allocation in the timed region"
    TIMED = "output of the timed loop"
    SAMPLES = "valid samples"
    PEAK = "theoretical peak"


class HarnessError(Exception):
    """Base of every refusal, told in one line instead of a traceback."""


class ChainBrokenError(HarnessError):
    """A link of the chain of trust failed: no time is reported.

    `sticky` is true when the device's context is lost and only a fresh process can go on.
    """

    def __init__(self, link: Link, detail: str, *, sticky: bool = False) -> None:
        super().__init__(f"{link}: {detail}")
        self.link = link
        self.detail = detail
        self.sticky = sticky


class UnfitError(HarnessError):
    """Nothing can be measured here: no such device, a package is missing, the lock is held."""


class SettingError(HarnessError):
    """A flag or argument that has no valid meaning."""
