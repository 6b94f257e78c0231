"""The roofline: what a kernel could reach at its arithmetic intensity, and what bounds it.

Source: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009. Rates per second, intensities
in FLOP per byte of compulsory traffic. Commands and pages place results here, nowhere else.
"""

from dataclasses import dataclass
from math import inf

from tracker.model import Peaks


@dataclass(frozen=True, slots=True)
class Roof:
    """Two ceilings: bytes and FLOP per second; a name, and where the bytes' number comes from.

    Without a FLOP rate only the memory is known to limit.
    """

    bytes_per_s: float
    flop_per_s: float | None = None
    name: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        flop = inf if self.flop_per_s is None else self.flop_per_s
        if not (self.bytes_per_s > 0 and flop > 0):
            raise ValueError(
                f"cannot draw a roof of {self.bytes_per_s} B/s and {self.flop_per_s} FLOP/s: "
                "both must be positive"
            )

    @property
    def ridge(self) -> float | None:
        """The intensity from which arithmetic, not memory, is the limit; None where not known."""
        return None if self.flop_per_s is None else self.flop_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        """Return the FLOP/s that this roof allows at an intensity of 0 or more."""
        by_memory = self.bytes_per_s * intensity
        return by_memory if self.flop_per_s is None else min(self.flop_per_s, by_memory)


@dataclass(frozen=True, slots=True)
class Point:
    """One result under its roof; fractions are of what is attainable."""

    intensity: float
    flop_per_s: float
    bytes_per_s: float
    attainable_flop_per_s: float
    memory_bound: bool
    fraction: float


def roofs(peaks: Peaks, *, copy: str, sum_of_two: str | None = None) -> tuple[Roof, ...]:
    """Return the roofs that are known: of the theoretical peak, of a copy, of a sum of two arrays.

    The last two go by the names given, the sum only with one. All end at the theoretical FLOP
    rate, the only one that is known.
    """
    flop = peaks.theoretical_flop_per_s or None
    found = []
    if peaks.theoretical_bytes_per_s:
        source = "memory clock and bus width"
        found.append(Roof(peaks.theoretical_bytes_per_s, flop, "theoretical peak", source))
    if peaks.copy_bytes_per_s:
        found.append(Roof(peaks.copy_bytes_per_s, flop, copy, peaks.copy_source or ""))
    if sum_of_two is not None and peaks.two_read_bytes_per_s:
        found.append(Roof(peaks.two_read_bytes_per_s, flop, sum_of_two))
    return tuple(found)


def bound_by(roof: Roof, point: Point, *, launch: bool) -> str | None:
    """Return what bounds a kernel: launch, where that is most of the time, memory or arithmetic.

    None where no FLOP rate is known that could bound it instead of the memory.
    """
    if launch:
        return "launch"
    if roof.ridge is None:
        return None
    return "memory" if point.memory_bound else "arithmetic"


def place(*, seconds: float, bytes_moved: float, flop: float, roof: Roof) -> Point:
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
    memory_bound = roof.ridge is None or intensity < roof.ridge
    if memory_bound or roof.flop_per_s is None:
        fraction = bytes_moved / seconds / roof.bytes_per_s
    else:
        fraction = flop / seconds / roof.flop_per_s
    return Point(
        intensity,
        flop / seconds,
        bytes_moved / seconds,
        roof.attainable(intensity),
        memory_bound,
        fraction,
    )
