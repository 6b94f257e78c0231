"""Numbers for people: base units in memory and store, scaled only here."""

from collections.abc import Sequence
from math import floor, isfinite, log10

_TIME: Sequence[tuple[float, str]] = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_LEAST, _MOST = 1e-12, 1e15
_BINARY: Sequence[tuple[int, str]] = (
    (1 << 40, "TiB"),
    (1 << 30, "GiB"),
    (1 << 20, "MiB"),
    (1 << 10, "KiB"),
)


def significant(value: float, digits: int = 4) -> str:
    """Return `value` with `digits` significant digits, in plain notation where people can read it.

    Beyond 10^15 and below 10^-12 it takes a power of ten.
    """
    if not isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not _LEAST <= abs(value) < _MOST:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}"


def grouped(value: float) -> str:
    """Return a count with its thousands set apart, what is too large for one in a power of ten."""
    return f"{value:,.0f}" if abs(value) < _MOST else significant(value)


def seconds(value_s: float, digits: int = 4) -> str:
    """Return a duration in the largest unit that keeps it at or above one."""
    scale, unit = next((s for s in _TIME if abs(value_s) >= s[0]), _TIME[-1])
    return f"{significant(value_s / scale, digits)} {unit}"


def bandwidth(value_bytes_per_s: float, digits: int = 4) -> str:
    """Return a rate in GB/s, the unit of data sheets (10^9 bytes)."""
    return f"{significant(value_bytes_per_s / 1e9, digits)} GB/s"


def size(value_bytes: int) -> str:
    """Return a size in binary units, exact where it is a whole number of them."""
    for scale, unit in _BINARY:
        if value_bytes >= scale:
            whole, rest = divmod(value_bytes, scale)
            return (
                f"{whole} {unit}" if rest == 0 else f"{significant(value_bytes / scale, 3)} {unit}"
            )
    return f"{value_bytes} B"


def percent(ratio: float, *, signed: bool = False) -> str:
    """Return a fraction as percent with two decimals; `signed` writes the plus sign too."""
    return f"{ratio * 100:{'+' if signed else ''}.2f} %"


def counted(number: int, what: str) -> str:
    """Return a number with its noun, such as `1 case` or `2 cases`."""
    ending = "es" if what.endswith("s") else "s"
    return f"{number} {what}{'' if number == 1 else ending}"
