"""The report as GitHub-flavoured Markdown, cut by whole rows to fit a limit."""

from collections.abc import Sequence
from dataclasses import replace

from tracker.report.document import CODES, Column, Document, Kind, Row, Table, Tone
from tracker.report.escape import code, prose
from tracker.report.footnotes import Footnotes

COMMENT_LIMIT = 65_536  # characters in a GitHub comment
_MANY_LINES, _FEW_LINES, _LONG = 40, 8, 300
# No line of a report needs more; one from elsewhere may bring megabytes.
_LONGEST = 2000
SUMMARY_LIMIT = 1_048_576  # bytes in a step summary; a larger one is dropped whole


def to_markdown(document: Document, *, limit: int = COMMENT_LIMIT) -> str:
    """Return `document` in at most `limit` bytes of UTF-8, which is never more characters.

    Rows are taken away from the end, where the least decided stand, and their number is told. Where
    even no row leaves room, the lines around the table are cut, then all but the summary.
    """
    keep = max((len(table.visible()) for table in document.tables), default=0)
    while True:
        text = _render(document, keep)
        if len(text.encode()) <= limit:
            return text
        if keep == 0:
            return _without_rows(document, limit)
        keep = max(0, min(keep - 1, keep * limit // (len(text.encode()) + 1)))


def _without_rows(document: Document, limit: int) -> str:
    for lines in (_MANY_LINES, _FEW_LINES, 0):
        facts, notes = (_cut(texts, lines) for texts in (document.fact_lines, document.notes))
        text = _render(replace(document, fact_lines=facts, notes=notes), 0)
        if len(text.encode()) <= limit:
            return text
    return ""


def _cut(texts: Sequence[str], lines: int) -> tuple[str, ...]:
    kept = tuple(text if len(text) <= _LONG else f"{text[:_LONG]}..." for text in texts[:lines])
    more = len(texts) - len(kept)
    return (*kept, f"{more} more lines did not fit and were cut") if more else kept


def _render(document: Document, keep: int) -> str:
    blocks = [f"### {prose(document.title)}"] if document.title else []
    if document.summary:
        blocks.append(f"**{prose(document.summary)}**")
    if document.fact_lines:
        blocks.append("\n".join(f"- {prose(line[:_LONGEST])}" for line in document.fact_lines))
    for table in document.tables:
        blocks += _table(table, keep)
    blocks += [f"> {prose(note[:_LONGEST])}" for note in document.notes]
    return "\n\n".join(blocks) + "\n"


def _table(table: Table, keep: int) -> list[str]:
    rows, footnotes = table.visible(), Footnotes(table.rows)
    shown, columns = rows[:keep], table.headed(rows)
    blocks = [f"#### {prose(table.heading)}"] if table.heading else []
    if shown:
        lines = [
            _line([prose(column.heading or "") for column in columns]),
            _line(["---:" if column.kind is Kind.NUMBER else ":---" for column in columns]),
            *(_line(_cells(row, columns, footnotes)) for row in shown),
        ]
        blocks.append("\n".join(lines))
    if footnotes.lines():
        blocks.append("\n".join(f"{n}. {prose(text)}" for n, text in footnotes.lines()))
    if len(shown) < len(rows):
        blocks.append(f"{len(rows) - len(shown)} more rows did not fit and were cut.")
    if table.hidden_note:
        blocks.append(prose(table.hidden_note))
    return blocks


def _cells(row: Row, columns: tuple[Column, ...], footnotes: Footnotes) -> list[str]:
    cells = [_cell(column, column.show(row.values.get(column.key))) for column in columns]
    if row.tone in {Tone.WORSE, Tone.BETTER}:
        cells[-1] = f"**{cells[-1]}**"
    marks = footnotes.marks(row)
    if marks:
        cells[-1] += f" <sup>{marks}</sup>"
    return cells


def _cell(column: Column, text: str) -> str:
    return code(text) if column.kind in CODES else prose(text) or " "


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
