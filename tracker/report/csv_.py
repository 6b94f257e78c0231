"""The report's first table as CSV: base units named in the header, full precision, every row."""

import csv
import io
import json

from tracker.report.document import Document, Value
from tracker.report.escape import csv_text
from tracker.report.json_ import strict


def to_csv(document: Document) -> str:
    """Return the rows of the first table; absent values are empty cells, nested ones JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if document.tables:
        table = document.tables[0]
        writer.writerow(table.machine_keys())
        for row in table.rows:
            writer.writerow([_cell(strict(row.values.get(key))) for key in table.machine_keys()])
    return out.getvalue()


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return csv_text(value)
    return csv_text(json.dumps(value, ensure_ascii=True, allow_nan=False))
