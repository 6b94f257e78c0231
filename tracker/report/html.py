"""The report as one HTML file that needs no network, no script and no other file."""

from collections.abc import Mapping
from html import escape as entities
from types import MappingProxyType

from tracker.report.document import CODES, Column, Document, Kind, Row, Table, Tone
from tracker.report.escape import plain
from tracker.report.footnotes import Footnotes

# Nothing may be loaded or run, whatever a text from a record manages to write.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NOWHERE: Mapping[str, str] = MappingProxyType({})
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --worse: #b35900; --better: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --worse: #ffb366; --better: #8ab4f8; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; }
.wide { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.worse td:last-child { color: var(--worse); font-weight: 600; }
tr.better td:last-child { color: var(--better); font-weight: 600; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
.notes, .footnotes { font-size: .92em; }
/* On a phone the verdict must be seen: columns go as they do in a narrow terminal. */
@media (max-width: 40rem) { .drop3, .drop4, .drop5, .drop6 { display: none; } }
@media (max-width: 30rem) { .drop2 { display: none; } }
"""


def to_html(
    document: Document, pages: Mapping[str, str] = _NOWHERE, command: str | None = None
) -> str:
    """Return `document` as a whole page; rows that people do not see by default are folded.

    At its end stand links (addresses by what they are called) and the command to reproduce.
    """
    title = _text(document.title or document.kind)
    parts = [f"<h1>{title}</h1>", f"<p><strong>{_text(document.summary)}</strong></p>"]
    if document.fact_lines:
        parts.append(_list("ul", document.fact_lines))
    for table in document.tables:
        parts += _table(table)
    if document.notes:
        parts.append(_list("ul", document.notes, "notes"))
    parts += [_link(name, address) for name, address in pages.items()]
    if command is not None:
        parts.append(f"<p>Reproduce: <code>{_text(command)}</code></p>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _table(table: Table) -> list[str]:
    hidden = tuple(row for row in table.rows if row.hidden)
    footnotes = Footnotes(table.rows)
    parts = [f"<h2>{_text(table.heading)}</h2>"] if table.heading else []
    if table.visible():
        parts.append(_grid(table, table.visible(), footnotes))
    if hidden:
        many = f"{len(hidden)} more rows"
        parts.append(
            f"<details><summary>{many}</summary>{_grid(table, hidden, footnotes)}</details>"
        )
    if footnotes.lines():
        items = "".join(f'<li value="{n}">{_text(text)}</li>' for n, text in footnotes.lines())
        parts.append(f'<ol class="footnotes">{items}</ol>')
    return parts


def _grid(table: Table, rows: tuple[Row, ...], footnotes: Footnotes) -> str:
    columns = table.headed(rows)
    head = "".join(
        f'<th scope="col"{_class(column)}>{_text(column.heading or "")}</th>' for column in columns
    )
    body = "".join(_row(row, columns, footnotes) for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, columns: tuple[Column, ...], footnotes: Footnotes) -> str:
    cells = [_cell(column, column.show(row.values.get(column.key))) for column in columns]
    if marks := footnotes.marks(row):
        cells[-1] = cells[-1].removesuffix("</td>") + f" <sup>{_text(marks)}</sup></td>"
    tone = f' class="{row.tone}"' if row.tone in {Tone.WORSE, Tone.BETTER} else ""
    return f"<tr{tone}>{''.join(cells)}</tr>"


def _cell(column: Column, text: str) -> str:
    shown = f"<code>{_text(text)}</code>" if column.kind in CODES else _text(text)
    return f"<td{_class(column)}>{shown}</td>"


def _class(column: Column) -> str:
    classes = [
        *(["number"] if column.kind is Kind.NUMBER else []),
        *([f"drop{column.drop}"] if column.drop > 1 else []),
    ]
    return f' class="{" ".join(classes)}"' if classes else ""


def _list(tag: str, lines: tuple[str, ...], name: str = "") -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<{tag}{f' class={name!r}' if name else ''}>{items}</{tag}>"


def _link(name: str, address: str) -> str:
    return f'<p><a rel="noreferrer" href="{_text(address)}">{_text(name)}</a></p>'


def _text(text: str) -> str:
    return entities(plain(text), quote=True)
