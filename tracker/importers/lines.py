"""JSON lines of `bandwatch export`, thing by thing."""

from collections.abc import Iterator
from pathlib import Path

from tracker.errors import RecordError
from tracker.importers.document import MAX_THING, Document
from tracker.importers.view import View
from tracker.record import parse_json

BEGINNING = b'{"bandwatch":"store"'


def documents(path: Path) -> Iterator[Document]:
    """Yield the file's things. Raises RecordError for a line that is too long or no JSON object."""
    with path.open("rb") as stream:
        lines = iter(lambda: stream.readline(MAX_THING + 1), b"")
        for number, data in enumerate(lines, start=1):
            where = f"{path} line {number}"
            if len(data) > MAX_THING:
                raise RecordError(f"cannot read {where}: longer than {MAX_THING:,} bytes")
            yield Document(where, View.of(parse_json(data, where), where).data)
