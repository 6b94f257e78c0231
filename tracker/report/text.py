"""The report for a terminal or a log: fits the width, needs no TTY, says nothing by colour only."""

import io
import os
import shutil
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from tracker.report.document import WRAPPING, Column, Document, Kind, Row, Table, Tone
from tracker.report.escape import plain
from tracker.report.footnotes import Footnotes

_STYLES = {
    Tone.PLAIN: "",
    Tone.WORSE: "bold yellow",
    Tone.BETTER: "bold blue",
    Tone.QUIET: "dim",
    Tone.WARNING: "yellow",
}
_LOG_WIDTH = 120
_LEAST_WIDTH = 40
_LEAST_CODE_WIDTH = 24
_LEAST_FOLDED_WIDTH = 4
_GAP = 2
_MARKS_WIDTH = 4
# For streams that cannot encode the marks.
_ASCII = str.maketrans({"▲": "^", "▼": "v", "–": "-", "…": "~", "±": "+-"})  # noqa: RUF001 - the table's own dash


def write_text(document: Document, stream: TextIO, *, width: int | None = None) -> None:
    """Write `document` to `stream`, in colour only when the stream is a terminal."""
    tty = stream.isatty()
    text = to_text(document, width=width or stream_width(tty=tty), colour=tty)
    stream.write(_encodable(text, getattr(stream, "encoding", None) or "utf-8"))


def to_text(document: Document, *, width: int, colour: bool = False) -> str:
    """Return `document` as lines of at most `width` columns."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(width, _LEAST_WIDTH),
        force_terminal=colour,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for line in _head(document):
        console.print(line)
    for table in document.tables:
        _print_table(table, console)
    for note in document.notes:
        console.print(Text(f"note: {plain(note)}"))
    if document.summary:
        style = "bold yellow" if document.failed else "bold"
        console.print(Text(plain(document.summary), style=style))
    return "".join(f"{_no_command(line.rstrip())}\n" for line in buffer.getvalue().splitlines())


def stream_width(*, tty: bool) -> int:
    """Return COLUMNS, the terminal's width, or what a log can show."""
    if os.environ.get("COLUMNS", "").isdigit() or tty:
        return shutil.get_terminal_size((_LOG_WIDTH, 24)).columns
    return _LOG_WIDTH


def _head(document: Document) -> list[Text]:
    title = [Text(plain(document.title), style="bold")] if document.title else []
    return [*title, *(Text(plain(line)) for line in document.fact_lines)]


def _print_table(table: Table, console: Console) -> None:
    rows, footnotes = table.visible(), Footnotes(table.rows)
    if table.heading:
        console.print(Text(f"\n{plain(table.heading)}", style="bold"))
    if rows:
        columns = _fitting(rows, table.headed(rows), console.width)
        console.print(_grid(rows, columns, footnotes, console.width))
    for number, text in footnotes.lines():
        console.print(Text(f"  [{number}] {plain(text)}", style="dim"))
    if table.hidden_note:
        console.print(Text(plain(table.hidden_note), style="dim"))


def _grid(
    rows: tuple[Row, ...], columns: tuple[Column, ...], footnotes: Footnotes, width: int
) -> Grid:
    grid = Grid(
        box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, _GAP, 0, 0)
    )
    # Where even what is never dropped does not fit, an id folds before others are cut.
    fits = _needed(rows, columns, _LEAST_FOLDED_WIDTH) <= width
    folding = WRAPPING if fits else WRAPPING | {Kind.ID}
    for column in columns:
        grid.add_column(
            Text(column.heading or ""),
            justify="right" if column.kind is Kind.NUMBER else "left",
            no_wrap=column.kind not in folding,
            overflow="fold",
        )
    for row in rows:
        cells = [plain(column.show(row.values.get(column.key))) for column in columns]
        marks = footnotes.marks(row)
        if marks:
            cells[-1] += f" [{marks}]"
        grid.add_row(*map(Text, cells), style=_STYLES[row.tone])
    return grid


def _fitting(rows: tuple[Row, ...], columns: tuple[Column, ...], width: int) -> tuple[Column, ...]:
    """Return the columns without those that leave no room for the names."""
    kept = list(columns)
    while True:
        droppable = [column for column in kept if column.drop]
        if _needed(rows, kept, _LEAST_CODE_WIDTH) <= width or not droppable:
            return tuple(kept)
        kept.remove(max(droppable, key=lambda column: column.drop))


def _needed(rows: tuple[Row, ...], columns: Sequence[Column], folded: int) -> int:
    """Return what a table takes, gaps and footnotes' marks with it; what wraps takes `folded`."""
    marks = _MARKS_WIDTH if any(row.footnotes for row in rows) else 0
    widths = sum(_width(rows, column, folded) for column in columns)
    return widths + _GAP * (len(columns) - 1) + marks


def _width(rows: tuple[Row, ...], column: Column, folded: int) -> int:
    cells = [cell_len(plain(column.show(row.values.get(column.key)))) for row in rows]
    widest = max([cell_len(column.heading or ""), *cells])
    return min(widest, folded) if column.kind in WRAPPING else widest


def _no_command(line: str) -> str:
    # Wrapping may bring `::` to the start of a line, where the CI runner would take a command.
    bare = line.lstrip()
    return line.replace("::", r"\x3a:", 1) if bare.startswith("::") else line


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")
    return text
