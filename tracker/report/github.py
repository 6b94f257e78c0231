"""The report for GitHub Actions: annotations, the step summary, the step's outputs.

Limits are GitHub's: ten annotations of a kind a step, 1 MiB of summary a step (a larger one is
dropped whole). What does not fit is counted, not lost in silence.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tracker.errors import ConfigError
from tracker.report.document import CODES, Document, Row, Table, Tone
from tracker.report.escape import command_message, command_property, plain
from tracker.report.markdown import SUMMARY_LIMIT, to_markdown

ANNOTATION_LIMIT = 10
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
OUTPUT_VARIABLE = "GITHUB_OUTPUT"


def write_github(document: Document, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Write annotations to `stream`, the table to the step summary, the verdict to the outputs.

    Without a step summary (outside Actions) the table follows the annotations on `stream`.
    Raises ConfigError when a file that the environment names cannot be written.
    """
    stream.writelines(f"{line}\n" for line in annotations(document))
    stream.write(f"{plain(document.summary or document.title)}\n")
    summary = environ.get(SUMMARY_VARIABLE)
    if summary:
        used = _size(Path(summary))
        _append(
            Path(summary),
            to_markdown(document, limit=max(SUMMARY_LIMIT - used, 0)),
            SUMMARY_VARIABLE,
        )
    else:
        stream.write(f"\n{to_markdown(document)}")
    outputs = environ.get(OUTPUT_VARIABLE)
    if outputs:
        _append(Path(outputs), step_outputs(document), OUTPUT_VARIABLE)


def annotations(document: Document, troubles: Sequence[str] = ()) -> tuple[str, ...]:
    """Return at most ten `::error` commands, worst first, and a `::notice` that counts the rest.

    `troubles` belong to no row: why nothing was measured, which tests failed. They come first.
    """
    told = [f"::error::{command_message(text)}" for text in troubles]
    worst = [
        (table, row) for table in document.tables for row in table.rows if row.tone is Tone.WORSE
    ]
    told += [_annotation(table, row) for table, row in worst]
    lines, more = told[:ANNOTATION_LIMIT], len(told) - ANNOTATION_LIMIT
    return (*lines, f"::notice::{more} more are in the step summary") if more > 0 else tuple(lines)


def step_outputs(document: Document) -> str:
    """Return `key=value` lines: the exit code and every fact that is a word or a number."""
    lines = [f"exit_code={int(document.exit_code)}"]
    for key, value in document.facts.items():
        if isinstance(value, str | int | float):
            lines.append(f"{plain(key)}={plain(str(value))}")
    return "\n".join(lines) + "\n"


def _annotation(table: Table, row: Row) -> str:
    columns = table.headed((row,))
    title = next((c.show(row.values.get(c.key)) for c in columns if c.kind in CODES), table.name)
    rest = [f"{c.heading} {c.show(row.values.get(c.key))}" for c in columns if c.kind not in CODES]
    message = command_message("; ".join([*rest, *(note.text for note in row.footnotes)]))
    place = ""
    if row.place:
        place = f"file={command_property(row.place[0])},line={row.place[1]},"
    return f"::error {place}title={command_property(title)}::{message}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _append(path: Path, text: str, variable: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(
            f"cannot write the file that {variable} names: {error.strerror or error}; "
            "unset it or correct it"
        ) from None
