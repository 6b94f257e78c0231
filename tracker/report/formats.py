"""One door to all formats."""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

from tracker.report.csv_ import to_csv
from tracker.report.document import Document
from tracker.report.github import write_github
from tracker.report.json_ import to_json
from tracker.report.markdown import to_markdown
from tracker.report.text import write_text


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    GITHUB = "github"


def write(
    document: Document,
    form: Format,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Write `document` in the given format to `stream` (standard output when None)."""
    out = stream if stream is not None else sys.stdout
    match form:
        case Format.TEXT:
            write_text(document, out)
        case Format.JSON:
            out.write(to_json(document))
        case Format.CSV:
            out.write(to_csv(document))
        case Format.MARKDOWN:
            out.write(to_markdown(document))
        case Format.GITHUB:
            write_github(document, out, environ)
