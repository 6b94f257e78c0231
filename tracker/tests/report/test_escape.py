"""Hostile text is shown, and does nothing, in each format."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from tracker.report.csv_ import to_csv
from tracker.report.escape import code, command_message, command_property, csv_text, plain, prose
from tracker.report.github import annotations, step_outputs
from tracker.report.json_ import to_json
from tracker.report.markdown import to_markdown
from tracker.report.text import to_text
from tracker.tests.report.samples import HOSTILE, hostile_document

_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
# What our own Markdown consists of once rendered.
_OWN_TAGS = {"h3", "p", "strong", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"}
_OWN_TAGS |= {"code", "sup", "blockquote", "br"}


class Tags(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(markdown: str) -> Tags:
    page = Tags()
    page.feed(
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    )
    return page


@pytest.mark.parametrize("text", HOSTILE)
def test_text_reaches_a_terminal_without_control_characters(text: str) -> None:
    shown = to_text(hostile_document(text), width=100)
    assert not _UNSAFE.search(shown)
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert "##[" not in shown


@pytest.mark.parametrize("width", range(40, 60))
def test_wrapping_brings_no_command_to_the_start_of_a_line(width: int) -> None:
    shown = to_text(hostile_document("long words and " * 3 + "xxxxxxx::error::" * 4), width=width)
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_renders_to_nothing_but_our_own_elements(text: str) -> None:
    page = rendered(to_markdown(hostile_document(text)))
    assert page.tags <= _OWN_TAGS
    assert "table" in page.tags


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_the_text_as_it_is(text: str) -> None:
    for markdown in (code(text), prose(text), f"| a |\n| --- |\n| {code(text)} |\n"):
        assert plain(text) in rendered(markdown).text.replace("\u200b", "").replace("\xa0", " ")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_markdown_table_keeps_its_columns(text: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {code(text)} | {prose(text)} |\n"
    html = MarkdownIt("commonmark").enable("table").render(table)
    assert html.count("<td>") == 2


def test_no_text_holds_the_mark_by_which_another_s_comment_is_found() -> None:
    mark = "<!-- Sticky Pull Request Commentcoverage -->"
    shown = to_markdown(hostile_document(mark))
    assert "<!--" not in shown
    assert mark in rendered(shown).text


@pytest.mark.parametrize(
    "text",
    ["see @someone", "fix #12", "GH-12 and (gh-3)", "https://evil.example", "www.evil.example"],
)
def test_prose_makes_no_mention_no_reference_and_no_link(text: str) -> None:
    escaped = prose(text)
    assert not re.search(r"(?<!&)[@#]\w|://|www\.", escaped)
    assert not re.search(r"&#(64|35);(?!&#8203;)|(?i:gh-\d)", escaped)


@pytest.mark.parametrize("text", ["- item", "+ item", "1. item", "10) item", "= rule", "> quote"])
def test_prose_opens_no_block(text: str) -> None:
    assert rendered(prose(text)).tags == {"p"}
    assert rendered(prose(text)).text.strip() == text


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_holds_no_formula_and_one_line_a_row(text: str) -> None:
    raw = to_csv(hostile_document(text))
    rows = list(csv.reader(io.StringIO(raw)))
    assert len(rows) == 2
    assert len(rows[0]) == len(rows[1])
    numbers = {"bandwidth_change", "bandwidth_change_low", "bandwidth_change_high"}
    for key, cell in zip(*rows, strict=True):
        assert key in numbers or not cell.startswith(("=", "+", "-", "@"))
        assert not _UNSAFE.search(cell)


@pytest.mark.parametrize("text", HOSTILE)
def test_json_is_ascii_and_gives_the_text_back(text: str) -> None:
    raw = to_json(hostile_document(text))
    assert raw.isascii()
    assert not _UNSAFE.search(raw)
    assert json.loads(raw)["tables"]["verdicts"][0]["kernel"] == text


@pytest.mark.parametrize("text", HOSTILE)
def test_the_runner_gets_exactly_our_commands(text: str) -> None:
    commands = annotations(hostile_document(text))
    assert len(commands) == 1
    assert commands[0].startswith("::error file=kernels/relu/cuda.cu,line=7,title=")
    head, _, message = commands[0][2:].partition("::")
    assert "\n" not in commands[0]
    assert head.count(",") == 2
    assert "##[" not in message
    outputs = step_outputs(hostile_document(text)).splitlines()
    assert all(re.fullmatch(r"[a-z_]+=.*", line) for line in outputs)


def test_command_escapes_follow_the_runner() -> None:
    assert command_message("50 % off\nnow") == "50 %25 off now"
    assert command_property("a:b,c") == "a%3Ab%2Cc"


def test_plain_text_stays_as_it_is() -> None:
    for text in ("relu/torch float32 [64] cold", "naïve 漢字 🙂", "a::b", ""):
        assert plain(text) == text
    assert csv_text("relu") == "relu"
    assert code("relu [64]") == "`relu [64]`"
    assert code("") == "` `"


def test_escapes_are_visible() -> None:
    assert plain("\x1b[31m\u202e") == r"\x1b[31m\u202e"
