"""JUnit XML and the HTML page: well-formed, complete, and harmless whatever a record says."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from tracker.model import VerdictKind
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.html import to_html
from tracker.report.junit import to_junit
from tracker.tests.report.samples import HOSTILE, make_document, make_judged

ALLOWED = frozenset(
    {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "ul", "li"),
        *("div", "table", "thead", "tbody", "tr", "th", "td", "code", "sup", "ol", "details"),
        "summary",
    }
)
VOID = frozenset({"meta"})


class Checker(HTMLParser):
    """Follows the tags; what a text smuggled in would be an unknown tag, attribute or a wrong end."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        names = {"class", "lang", "charset", "content", "name", "http-equiv", "scope", "value"}
        assert {name for name, _ in attrs} <= names
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(page: str) -> str:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return " ".join(checker.text)


def hostile(text: str) -> Document:
    columns = (Column("case", text, Kind.CODE), Column("mark", "verdict"))
    row = Row(
        {"case": text, "kernel": text, "mark": text, "outcome": "regression"}, place=(text, 1)
    )
    tables = (Table(text, columns, (row,), heading=text, hidden_note=text),)
    return Document("verdicts", text, text, {"verdict": text}, (text,), tables, (text,))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_out_of_the_page(text: str) -> None:
    page = to_html(hostile(text))
    parse(page)
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_the_xml(text: str) -> None:
    suite = ET.fromstring(to_junit(hostile(text)))
    assert [case.tag for case in suite.iter("testcase")] == ["testcase"]
    assert suite.get("failures") == "1"


def test_the_page_loads_nothing() -> None:
    page = to_html(make_document())
    assert "default-src 'none'" in page
    assert not re.search(r"(?i)src=|href=|url\(|@import|<script", page)


def test_the_page_says_everything_that_the_report_says() -> None:
    document = make_document()
    shown = parse(to_html(document))
    for line in (document.summary, *document.fact_lines, *document.notes):
        assert " ".join(line.split()) in " ".join(shown.split())


def test_hidden_rows_are_folded_not_lost() -> None:
    column = Column("case", "case", Kind.CODE)
    rows = (Row({"case": "seen"}), Row({"case": "folded"}, hidden=True))
    page = to_html(Document("verdicts", "t", "s", tables=(Table("verdicts", (column,), rows),)))
    assert page.index("seen") < page.index("<details><summary>1 more rows") < page.index("folded")


@pytest.mark.parametrize(
    ("kind", "tag"),
    [
        (VerdictKind.REGRESSION, "failure"),
        (VerdictKind.UNDECIDED, "skipped"),
        (VerdictKind.IMPROVEMENT, None),
        (VerdictKind.NO_CHANGE, None),
    ],
)
def test_a_verdict_becomes_a_test_outcome(kind: VerdictKind, tag: str | None) -> None:
    document = make_document([make_judged(kind, "relu", effect=-0.1)])
    case = next(ET.fromstring(to_junit(document)).iter("testcase"))
    found = {child.tag for child in case} - {"properties"}
    assert found == ({tag} if tag else set())
    assert case.get("classname") == "relu"


def test_counts_agree_with_the_cases() -> None:
    kinds = [VerdictKind.REGRESSION, VerdictKind.UNDECIDED, VerdictKind.NO_CHANGE]
    judged = [make_judged(kind, f"k{n}", effect=-0.1) for n, kind in enumerate(kinds)]
    suite = ET.fromstring(to_junit(make_document(judged)))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")


def test_on_a_phone_columns_go_in_their_order_and_never_case_change_or_verdict() -> None:
    page = to_html(make_document())
    head = re.findall(r'<th scope="col"(?: class="([^"]*)")?>([^<]*)</th>', page)
    dropped = {text for names, text in head if "drop" in names}
    assert dropped == {"time", "GB/s", "of copy", "would show"}
    for number in (2, 3, 4):
        assert f'class="number drop{number}"' in page
        assert re.search(rf"@media \(max-width: \w+\) {{ [^}}]*\.drop{number}\b", page)
