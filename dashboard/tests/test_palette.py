"""The palette by computation: contrast with the page, and difference under colour vision."""

import itertools
import tomllib
from pathlib import Path

import pytest

from dashboard.palette import DARK, DASHES, LIGHT, MARKS, MAX_LINES, Palette, palette
from dashboard.tests.vision import VISIONS, contrast, distance
from tracker.model import VerdictKind

CONFIG = Path(__file__).parents[1] / ".streamlit" / "config.toml"
BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


def verdict_colours(colours: Palette) -> tuple[str, str, str]:
    return colours.regression, colours.improvement, colours.unchanged


def test_the_vision_model_rejects_a_usual_red_and_green() -> None:
    assert distance("#D62728", "#2CA02C", "usual") > 80
    assert distance("#A04020", "#607000", "deutan") < 12


@BOTH
def test_text_and_verdicts_are_readable_on_the_page(colours: Palette) -> None:
    for colour in (*verdict_colours(colours), colours.text, colours.muted):
        assert contrast(colour, colours.background) >= 4.5


@BOTH
@pytest.mark.parametrize("vision", VISIONS)
def test_verdict_colours_differ_for_every_vision(colours: Palette, vision: str) -> None:
    for first, second in itertools.combinations(verdict_colours(colours), 2):
        assert distance(first, second, vision) >= 29


@BOTH
def test_lines_stand_out_from_the_page_and_from_each_other(colours: Palette) -> None:
    assert len(colours.lines) == len(DASHES) == MAX_LINES
    for colour in colours.lines:
        assert contrast(colour, colours.background) >= 3
    for first, second in itertools.combinations(colours.lines, 2):
        assert distance(first, second, "usual") >= 20


def test_each_verdict_has_its_own_arrow_word_and_mark() -> None:
    assert set(MARKS) == set(VerdictKind)
    assert len({mark.arrow for mark in MARKS.values()}) == len(MARKS)
    assert len({(mark.shape, mark.filled) for mark in MARKS.values()}) == len(MARKS)
    assert MARKS[VerdictKind.REGRESSION].text == "▲ slower"


def test_dash_patterns_differ() -> None:
    assert len(set(DASHES)) == len(DASHES)


def test_unknown_theme_is_light() -> None:
    assert palette(None) is LIGHT
    assert palette("dark") is DARK


@BOTH
def test_the_theme_file_uses_the_palette(colours: Palette) -> None:
    theme = tomllib.loads(CONFIG.read_text())["theme"][colours.name]
    assert tuple(theme["chartCategoricalColors"]) == colours.lines
    assert theme["backgroundColor"] == colours.background
    assert theme["textColor"] == colours.text
    assert contrast(theme["linkColor"], colours.background) >= 4.5


@BOTH
def test_words_stay_readable_on_the_backgrounds_of_verdicts(colours: Palette) -> None:
    theme = tomllib.loads(CONFIG.read_text())["theme"][colours.name]
    behind = [theme[f"{name}BackgroundColor"] for name in ("orange", "blue", "gray")]
    for colour in behind:
        assert contrast(colour, colours.text) >= 4.5
    for first, second in itertools.combinations(behind, 2):
        assert distance(first, second, "deutan") >= 10
