"""A report before it has a format: facts, tables of plain values, notes.

A cell holds a base value (seconds, bytes per second, a fraction). JSON and CSV write it as it is;
the formats for people ask the column how to show it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Value = str | int | float | bool | None | Sequence["Value"] | Mapping[str, "Value"]
ABSENT = "–"  # noqa: RUF001 - an en dash is what a table shows where there is no value


class Tone(StrEnum):
    """How a row or a note is meant; formats with colour add one, none relies on it."""

    PLAIN = "plain"
    WORSE = "worse"
    BETTER = "better"
    QUIET = "quiet"
    WARNING = "warning"


class Kind(StrEnum):
    """What a cell's text is: decides alignment, wrapping and escaping."""

    TEXT = "text"
    WORD = "word"
    CODE = "code"
    ID = "id"  # code that stays on one line where the width allows one: people copy it
    NUMBER = "number"


CODES = frozenset({Kind.CODE, Kind.ID})
WRAPPING = frozenset({Kind.CODE, Kind.TEXT})


def show_plain(value: Value) -> str:
    """Return the text of a cell that needs no unit."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(show_plain, value))
    return str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `key` names it, with its unit, in JSON and CSV; people see it by its heading.

    A column for people only (`machine` false) shows what others hold as plain values. Where the
    width does not suffice, columns with the highest `drop` go first; those with 0 stay.
    """

    key: str
    heading: str | None
    kind: Kind = Kind.TEXT
    show: Callable[[Value], str] = show_plain
    machine: bool = True
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Footnote:
    """A sentence under a table; those with one `key` share a number.

    `of` says what its rows are where their number is told; of several texts the one of the greatest
    `weight` stands.
    """

    text: str
    key: str
    of: str = ""
    weight: int = 0


def footnote(text: str) -> Footnote:
    """Return a footnote that only its very text shares a number with."""
    return Footnote(text, text)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: values by column key, footnotes, and whether people see it by default."""

    values: Mapping[str, Value]
    tone: Tone = Tone.PLAIN
    footnotes: tuple[Footnote, ...] = ()
    hidden: bool = False
    place: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns. `hidden_note` tells people what is hidden and how to see it."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    heading: str | None = None
    hidden_note: str | None = None

    def visible(self) -> tuple[Row, ...]:
        """Return the rows that people see."""
        return tuple(row for row in self.rows if not row.hidden)

    def machine_keys(self) -> tuple[str, ...]:
        """Return the keys of the columns that JSON and CSV hold."""
        return tuple(column.key for column in self.columns if column.machine)

    def headed(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return the columns that people see of `rows`: those with a heading and any value."""
        return tuple(
            column
            for column in self.columns
            if column.heading is not None
            and (not rows or any(row.values.get(column.key) is not None for row in rows))
        )


@dataclass(frozen=True, slots=True)
class Document:
    """Everything that one command has to say. `kind` names the shape of its JSON."""

    kind: str
    title: str
    summary: str
    facts: Mapping[str, Value] = field(default_factory=dict)
    fact_lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0
    failed: bool = False
