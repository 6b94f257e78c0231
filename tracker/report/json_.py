"""The report as strict JSON, in the shape that report-1.json beside this module describes.

NaN and infinity become null; text is ASCII with escapes, so no control character and no
bidirectional override reaches a terminal.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite

from tracker.report.document import Document, Table, Value

SCHEMA = 1


def to_json(document: Document) -> str:
    """Return one JSON object with every row, hidden ones too, and a newline at the end."""
    data = {
        "schema": SCHEMA,
        "kind": document.kind,
        "exit_code": int(document.exit_code),
        "summary": document.summary,
        "facts": strict(document.facts),
        "tables": {table.name: _rows(table) for table in document.tables},
        "notes": list(document.notes),
    }
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def strict(value: Value) -> Value:
    """Return `value` as plain JSON data, None where a number is not finite."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [strict(item) for item in value]
    return value


def _rows(table: Table) -> list[Value]:
    return [
        {key: strict(row.values.get(key)) for key in table.machine_keys()} for row in table.rows
    ]
