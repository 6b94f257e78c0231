"""Colours, marks and arrows of the verdicts and lines, for light and dark pages.

A state is never told by colour alone: each has a word, an arrow and a mark of its own. The tests
compute the contrast of each colour with its page and the distance of each pair of verdict colours
as seen with protan, deutan and tritan vision.

Source: line colours after Okabe and Ito, "Color universal design" (2008), without those that are
too pale on the page in question.
"""

from dataclasses import dataclass
from typing import Literal

from tracker.model import VerdictKind

ThemeName = Literal["light", "dark"]
MAX_LINES = 6


@dataclass(frozen=True, slots=True)
class Mark:
    """How a verdict looks without its colour: arrow and word for text, Vega shape for charts."""

    arrow: str
    word: str
    shape: str
    filled: bool = True

    @property
    def text(self) -> str:
        """Arrow and word, such as `▲ slower`."""
        return f"{self.arrow} {self.word}"


MARKS: dict[VerdictKind, Mark] = {
    VerdictKind.REGRESSION: Mark("▲", "slower", "triangle-up"),
    VerdictKind.IMPROVEMENT: Mark("▼", "faster", "triangle-down"),
    VerdictKind.NO_CHANGE: Mark("=", "no change", "circle"),
    VerdictKind.UNDECIDED: Mark("?", "undecided", "circle", filled=False),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case, in the words of the terminal's report, and its colour in a table."""

    text: str
    pill: Literal["orange", "blue", "gray"]


# By the names that `tracker.report.judged` gives them, those that ask for action first.
OUTCOMES: dict[str, Outcome] = {
    "incorrect": Outcome("! incorrect", "orange"),
    "error": Outcome("! error", "orange"),
    "regression": Outcome("▲ slower", "orange"),
    "improvement": Outcome("▼ faster", "blue"),
    "not run": Outcome("! not run", "orange"),
    "undecided": Outcome("? undecided", "gray"),
    "no baseline": Outcome("? no baseline", "gray"),
    "no change": Outcome("= no change", "gray"),
}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme."""

    name: ThemeName
    background: str
    text: str
    muted: str
    regression: str
    improvement: str
    unchanged: str
    grid: str
    lines: tuple[str, ...]

    def verdict(self, kind: VerdictKind) -> str:
        """Return the colour of a verdict; no change and undecided share the grey."""
        if kind is VerdictKind.REGRESSION:
            return self.regression
        return self.improvement if kind is VerdictKind.IMPROVEMENT else self.unchanged


LIGHT = Palette(
    name="light",
    background="#FFFFFF",
    text="#1F2023",
    muted="#6B6B6B",
    regression="#C44E00",
    improvement="#0072B2",
    unchanged="#6B6B6B",
    grid="#E4E3E1",
    lines=("#2B2B2B", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C6D00"),
)
DARK = Palette(
    name="dark",
    background="#171614",
    text="#E8E6E3",
    muted="#A8A6A3",
    regression="#F0A030",
    improvement="#56B4E9",
    unchanged="#A8A6A3",
    grid="#34322F",
    lines=("#E8E6E3", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00"),
)

# A second signal for lines, in the order of `Palette.lines`: lengths of dash and gap in pixels.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4), (4, 2, 1, 2))


def palette(theme: str | None) -> Palette:
    """Return the palette of a theme's name; light where the browser has not told it yet."""
    return DARK if theme == "dark" else LIGHT
