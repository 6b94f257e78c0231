"""Tables of a study: printed, and kept as Markdown and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Value: TypeAlias = str | int | float | bool
Row: TypeAlias = "dict[str, Value]"
_SHARES = re.compile(r"difference|spread|goal|share|planted|found|outside")


@dataclass(frozen=True)
class Section:
    """One table with its title and the sentence that says how it was made."""

    title: str
    how: str
    rows: list[Row]

    @property
    def reached(self) -> bool:
        """Whether every row that has a goal reached it."""
        return all(row.get("reached", True) for row in self.rows)

    def text(self) -> str:
        """Return the section as Markdown."""
        names = list(self.rows[0])
        head = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
        body = [f"| {' | '.join(shown(name, row[name]) for name in names)} |" for row in self.rows]
        return "\n".join([f"## {self.title}", "", f"{self.how}.", "", *head, *body, ""])


def shown(name: str, value: Value) -> str:
    """Return a cell: shares in percent, numbers with four significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3%}" if _SHARES.search(name) else f"{value:.4g}"


def write(sections: Sequence[Section], folder: Path, facts: Mapping[str, Any]) -> Path:
    """Write the sections, one name for each GPU model, and return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    model = str(facts["environment"]["gpu_model"])
    stem = "trust-" + re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    made = datetime.now(UTC).isoformat(timespec="seconds")
    environment = facts["environment"]
    libraries = ", ".join(f"{k} {v}" for k, v in environment["libraries"].items())
    intro = (
        f"# How far the times can be trusted: {model}\n\n"
        f"Made {made} by `python -m perftests.studies.trust`; driver {environment['driver']}, "
        f"CUDA {environment['cuda']}, {libraries}.\n"
    )
    path = folder / f"{stem}.md"
    path.write_text("\n".join([intro, *(section.text() for section in sections)]))
    document = {
        "made": made,
        **facts,
        "sections": [{"title": s.title, "how": s.how, "rows": s.rows} for s in sections],
    }
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path
