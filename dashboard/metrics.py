"""What the y axis can show: bandwidth, time or fraction of copy, in units and digits for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Literal

from tracker import units

MetricName = Literal["bandwidth", "time", "copy"]
_TIME_SCALES: tuple[tuple[float, str], ...] = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit for a whole axis: a value in base units divided by `per` reads in `unit`."""

    per: float
    unit: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing to plot: its name in addresses, its words, and which direction is better."""

    name: MetricName
    title: str
    column: str
    higher_is_better: bool

    def scale(self, values: Iterable[float]) -> Scale:
        """Return the unit in which the largest value is at least one."""
        if self.name == "bandwidth":
            return Scale(1e9, "GB/s")
        if self.name == "copy":
            return Scale(0.01, "% of copy")
        top = max((abs(v) for v in values), default=0.0)
        return Scale(*next((s for s in _TIME_SCALES if top >= s[0]), _TIME_SCALES[-1]))

    def text(self, value: float, digits: int = 4) -> str:
        """Return one value with its unit, such as `4012 GB/s`."""
        if self.name == "bandwidth":
            return units.bandwidth(value, digits)
        return percent(value) if self.name == "copy" else units.seconds(value, digits)


BANDWIDTH = Metric("bandwidth", "Bandwidth", "bandwidth_bytes_per_s", higher_is_better=True)
TIME = Metric("time", "Time", "median_s", higher_is_better=False)
COPY = Metric("copy", "Fraction of copy", "copy_fraction", higher_is_better=True)
METRICS: dict[str, Metric] = {m.name: m for m in (BANDWIDTH, TIME, COPY)}


def percent(fraction: float) -> str:
    """Return a fraction as percent with one decimal, enough where noise is a tenth of a percent."""
    return f"{fraction * 100:.1f} %"


def change(effect: float) -> str:
    """Return a relative change with its sign, two digits below one percent: `-5.0 %`, `+0.31 %`."""
    value = effect * 100
    decimals = 1 if abs(value) >= 1 else 2
    return f"{value:+.{decimals}f} %".replace("-", "\N{MINUS SIGN}")


def certainty(p_value: float) -> str:
    """Return how sure a change is, in words that fit a table: `p < 1e-9`, `p = 0.002`."""
    if isnan(p_value):
        return ""
    return "p < 1e-9" if p_value < 1e-9 else f"p = {p_value:.1g}"
