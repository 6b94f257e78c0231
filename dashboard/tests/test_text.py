"""Text from the store stays text."""

import pytest

from dashboard import text

HOSTILE = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(1)) :red[hi]"


def test_html_is_shown_not_built() -> None:
    shown = text.in_html(HOSTILE)
    assert "<" not in shown
    assert '"' not in text.in_html('a" onmouseover="x')


def test_control_and_bidirectional_characters_show_as_escapes() -> None:
    assert text.plain("a\x1b[31mb\u202ec") == "a\\x1b[31mb\\u202ec"


def test_line_breaks_cannot_forge_a_line() -> None:
    assert text.plain("one\n\ntwo\u2028three") == "one two three"


def test_long_text_is_cut_with_an_ellipsis() -> None:
    assert text.plain("x" * 500, 10) == "x" * 9 + "…"


def test_no_text_is_a_dash() -> None:
    assert text.plain(None) == text.plain("") == text.ABSENT


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "/relative",
        "https://",
        "https://a.example/\u202ex",
        "http://[bad",
        "https://a.example/x y",
    ],
)
def test_only_web_addresses_become_links(address: str | None) -> None:
    assert text.web_link(address) is None


def test_a_ci_address_becomes_a_link() -> None:
    assert text.web_link("https://ci.example.org/runs/1?x=2") == "https://ci.example.org/runs/1?x=2"


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_no_csv_cell_is_a_formula(start: str) -> None:
    assert text.csv_cell(f"{start}cmd|'/c calc'!A0").startswith("'")
    assert text.csv_cell("relu") == "relu"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "just now"),
        (125, "2 min ago"),
        (10_800, "3 h ago"),
        (86_400, "1 day ago"),
        (864_000, "10 days ago"),
        (-5, "in the future"),
    ],
)
def test_ages_in_words(seconds: float, words: str) -> None:
    assert text.ago(seconds) == words


@pytest.mark.parametrize(
    ("author", "shown"),
    [
        ("Ada Lovelace <ada@example.org>", "Ada Lovelace"),
        ("Ada Lovelace", "Ada Lovelace"),
        ("<ada@example.org>", "<ada@example.org>"),
        (None, text.ABSENT),
        ("", text.ABSENT),
    ],
)
def test_a_person_is_shown_by_name(author: str | None, shown: str) -> None:
    assert text.person(author) == shown
