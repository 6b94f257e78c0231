"""The roofline: what a kernel could reach at its arithmetic intensity, and what bounds it.

Source: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009. Rates per second, intensities
in FLOP per byte of compulsory traffic.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roof:
    """One device's two ceilings."""

    bytes_per_s: float
    flop_per_s: float

    def __post_init__(self) -> None:
        if not (self.bytes_per_s > 0 and self.flop_per_s > 0):
            raise ValueError(
                f"cannot draw a roof of {self.bytes_per_s} B/s and {self.flop_per_s} FLOP/s: "
                "both must be positive"
            )

    @property
    def ridge(self) -> float:
        """The intensity from which arithmetic, not memory, is the limit."""
        return self.flop_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        """Return the FLOP/s that this roof allows at an intensity of 0 or more."""
        return min(self.flop_per_s, self.bytes_per_s * intensity)


@dataclass(frozen=True, slots=True)
class Point:
    """One result under its roof; fractions are of what is attainable."""

    intensity: float
    flop_per_s: float
    bytes_per_s: float
    attainable_flop_per_s: float
    memory_bound: bool
    fraction: float


def place(*, seconds: float, bytes_moved: int, flop: int, roof: Roof) -> Point:
    """Return where a kernel stands that moved `bytes_moved` and did `flop` in `seconds`.

    A kernel without arithmetic is placed by bandwidth alone. ValueError unless time and bytes are
    positive and FLOP at least 0.
    """
    if not (seconds > 0 and bytes_moved > 0 and flop >= 0):
        raise ValueError(
            f"cannot place {seconds} s, {bytes_moved} bytes, {flop} FLOP: "
            "need a positive time, some bytes and no negative work"
        )
    intensity = flop / bytes_moved
    attainable = roof.attainable(intensity)
    memory_bound = intensity < roof.ridge
    rate, limit = (
        (bytes_moved / seconds, roof.bytes_per_s)
        if memory_bound
        else (flop / seconds, roof.flop_per_s)
    )
    return Point(
        intensity, flop / seconds, bytes_moved / seconds, attainable, memory_bound, rate / limit
    )
