"""Tables of a study: printed, and kept as Markdown and JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value: TypeAlias = str | int | float | bool
Row: TypeAlias = "dict[str, Value]"
_SHARES = re.compile(r"difference|spread|goal|share|planted|found|outside")
_SCALES = {
    "s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9,
    "B": 1.0, "KiB": 2.0**-10, "MiB": 2.0**-20, "GiB": 2.0**-30,
    "GB/s": 1e-9, "TB/s": 1e-12, "GFLOP/s": 1e-9, "TFLOP/s": 1e-12,
    "FLOP/byte": 1.0, "J": 1.0, "mJ": 1e3, "J/GB": 1e9, "W": 1.0, "MHz": 1e-6,
}  # fmt: skip
"""What a column's value, in base units, is multiplied by for a reader."""


@dataclass(frozen=True)
class Section:
    """One table with its title and the sentence that says how it was made.

    Columns are those of all rows; a row may lack some. `units` names the unit in which a column is
    shown, whose values are in base units: seconds, bytes, bytes a second, FLOP a second, J, J a
    byte; also "%" for shares, "x" for ratios. `folded` hides a long table until a reader opens it.
    """

    title: str
    how: str
    rows: list[Row]
    units: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    folded: bool = False

    @property
    def reached(self) -> bool:
        """Whether every row that has a goal reached it."""
        return all(row.get("reached", True) for row in self.rows)

    def text(self) -> str:
        """Return the section as Markdown."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        title = [f"## {self.title}", "", f"{self.how}.", ""]
        if not names:
            return "\n".join([*title, "Nothing was found.", ""])
        head = [f"| {' | '.join(map(self._heading, names))} |", f"|{'---|' * len(names)}"]
        body = [f"| {' | '.join(self._cell(name, row) for name in names)} |" for row in self.rows]
        table = [*head, *body, ""]
        if self.folded:
            summary = f"<summary>{len(self.rows)} rows</summary>"
            table = ["<details>", summary, "", *table, "</details>", ""]
        return "\n".join([*title, *table])

    def document(self) -> dict[str, Any]:
        """Return the section as JSON data: base units, None for what is not finite."""
        rows = [{name: _finite(value) for name, value in row.items()} for row in self.rows]
        found: dict[str, Any] = {"title": self.title, "how": self.how, "rows": rows}
        return {**found, "units": dict(self.units)} if self.units else found

    def _heading(self, name: str) -> str:
        unit = self.units.get(name)
        return name if unit in {None, "x", "%"} else f"{name} ({unit})"

    def _cell(self, name: str, row: Row) -> str:
        if name not in row:
            return "-"
        unit = self.units.get(name)
        text = shown(name, row[name]) if unit is None else in_unit(row[name], unit)
        return text.replace("|", "\\|").replace("\n", " ")


def shown(name: str, value: Value) -> str:
    """Return a cell: shares in percent, numbers with four significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3%}" if _SHARES.search(name) else f"{value:.4g}"


def in_unit(value: Value, unit: str) -> str:
    """Return a value in a unit; text and truth values stay. Raises KeyError on an unknown unit."""
    if isinstance(value, (bool, str)):
        return shown("", value)
    if not isfinite(value):
        return "-"
    if unit == "%":
        return f"{value:.1%}"
    if unit == "x":
        return f"{value:.2f}x"
    return _four_digits(value * _SCALES[unit])


def factor(unit: str) -> float:
    """Return what a value in base units is multiplied by; raise KeyError for an unknown unit."""
    return 100.0 if unit == "%" else _SCALES[unit]


def _four_digits(value: float) -> str:
    """Return four significant digits, never in powers of ten from a thousandth to a million."""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3e}"
    return f"{value:.0f}" if abs(value) >= 1e3 else f"{value:.4g}"


def _finite(value: Value) -> Value | None:
    return None if isinstance(value, float) and not isfinite(value) else value


def slug(model: str) -> str:
    """Return a GPU model as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")


def versions(environment: Mapping[str, Any]) -> str:
    """Return driver, CUDA and libraries for a sentence."""
    libraries = [f"{name} {version}" for name, version in environment["libraries"].items()]
    known = [f"{name} {environment[key]}" for name, key in _PARTS if environment.get(key)]
    return ", ".join([*known, *libraries])


_PARTS = (("driver", "driver"), ("CUDA", "cuda"))


def documents(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Return sections as JSON data."""
    return [section.document() for section in sections]
