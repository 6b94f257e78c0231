"""The report as JUnit XML, which CI systems show as tests: one test case for each judged case.

Slower fails, incorrect and error are errors, undecided is skipped; the numbers are properties.
"""

from xml.sax.saxutils import escape, quoteattr

from tracker.report.document import Document, Row, Table, Tone, Value
from tracker.report.escape import plain
from tracker.report.json_ import strict

_FAILED = "regression"
_ERRORS = frozenset({"incorrect", "error"})
_SKIPPED = "undecided"
_PROPERTIES = (
    "bandwidth_change",
    "bandwidth_change_low",
    "bandwidth_change_high",
    "bandwidth_bytes_per_s",
    "copy_fraction",
    "time_s",
    "floor_s",
    "launch_bound",
    "baseline",
    "outcome",
)


def to_junit(document: Document) -> str:
    """Return the rows of the verdicts as one test suite, hidden rows too."""
    rows = [(table, row) for table in document.tables for row in table.rows]
    counts = {kind: sum(_kind(row) == kind for _, row in rows) for kind in _KINDS}
    head = (
        f"<testsuite name={_attribute(document.title or document.kind)} "
        f"tests={_attribute(len(rows))} "
        f"failures={_attribute(counts['failure'])} errors={_attribute(counts['error'])} "
        f"skipped={_attribute(counts['skipped'])}>"
    )
    facts = [
        f"    <property name={_attribute(key)} value={_attribute(value)}/>"
        for key, value in document.facts.items()
        if isinstance(value, str | int | float)
    ]
    body = [line for table, row in rows for line in _case(table, row)]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            head,
            "  <properties>",
            *facts,
            "  </properties>",
            *body,
            f"  <system-out>{_text(document.summary)}</system-out>",
            "</testsuite>",
            "",
        ]
    )


_KINDS = ("failure", "error", "skipped", "passed")


def _kind(row: Row) -> str:
    outcome = row.values.get("outcome")
    if outcome in _ERRORS:
        return "error"
    if outcome == _FAILED or (outcome is None and row.tone is Tone.WORSE):
        return "failure"
    return "skipped" if outcome == _SKIPPED else "passed"


def _case(table: Table, row: Row) -> list[str]:
    name = row.values.get("case") or row.values.get(table.columns[0].key)
    group = row.values.get("kernel") or table.name
    time_s = row.values.get("time_s")
    time = f" time={_attribute(time_s)}" if isinstance(time_s, int | float) else ""
    place = f" file={_attribute(row.place[0])} line={_attribute(row.place[1])}" if row.place else ""
    lines = [f"  <testcase classname={_attribute(group)} name={_attribute(name)}{time}{place}>"]
    kind = _kind(row)
    told = "; ".join(note.text for note in row.footnotes)
    if kind != "passed":
        message = _attribute(row.values.get("mark") or row.values.get("outcome") or kind)
        lines.append(f"    <{kind} message={message}>{_text(told)}</{kind}>")
    lines += [
        "    <properties>",
        *(
            f"      <property name={_attribute(key)} value={_attribute(row.values[key])}/>"
            for key in _PROPERTIES
            if row.values.get(key) is not None
        ),
        "    </properties>",
        "  </testcase>",
    ]
    return lines


def _attribute(value: Value) -> str:
    return quoteattr(plain(str(strict(value))))


def _text(text: str) -> str:
    return escape(plain(text))
