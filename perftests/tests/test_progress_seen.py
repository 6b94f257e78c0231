"""The moving line beside pytest's own output, as a person sees both on a terminal."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from perftests.tests.screen import Screen, in_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

CASES = 60
# Nothing is measured: only what the terminal shows is asked for here.
SUITE = f"""
import pytest
@pytest.mark.parametrize("n", range({CASES}))
def test_case(n, gpu_benchmark):
    assert n != 7
"""
_HEIGHT = 12
_OURS = re.compile(r"bandwatch: \d+ of \d+, about \d+ s left, done [^ ]*")
_DOTS = re.compile(r"(test_suite\.py )?[.F]+( *\[ *\d+%\])?")


def test_the_screen_shows_what_a_line_drawn_into_the_dots_makes_of_them() -> None:
    screen = Screen(40, 4)
    list(screen.feed("...\rbandwatch: 1 of 2\x1b[0m.."))
    assert screen.seen()[0] == "bandwatch: 1 of 2.."
    assert not _DOTS.fullmatch(screen.seen()[0])


@pytest.mark.parametrize(
    ("flags", "columns"),
    [(("-q",), 80), ((), 30), (("-q", "-n2"), 30), (("-n2",), 80)],
    ids=["quiet", "normal-narrow", "quiet-workers-narrow", "normal-workers"],
)
def test_dots_and_the_moving_line_never_share_a_row(
    tmp_path: Path, flags: tuple[str, ...], columns: int
) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    unset = {"CI", "COLUMNS", "LINES", "NO_COLOR", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"}
    environ = {k: v for k, v in os.environ.items() if k not in unset} | {"TERM": "xterm"}
    words = (*flags, "-p", "no:cacheprovider", "-W", "ignore", "--tb=no", "--bandwatch-timing=on")
    command = (sys.executable, "-m", "pytest", *words)
    written = in_a_terminal(command, tmp_path, environ, columns, _HEIGHT)

    screen, shown = Screen(columns, _HEIGHT), set()
    for control in screen.feed(written):
        ours = [line for line in screen.seen() if "bandwatch:" in line]
        if control != "\x1b8" or not ours:
            continue
        # Drawn: one row, alone on it, right below the dots or the row that they go on in.
        assert len(ours) == 1
        assert len(ours[0]) < columns
        below = screen.seen().index(ours[0])
        assert _DOTS.fullmatch(screen.seen()[below - 1] or screen.seen()[below - 2])
        shown.add(ours[0])

    assert len(shown) > CASES / 3
    assert columns < 80 or all(map(_OURS.fullmatch, shown))
    left = screen.seen()
    assert not [line for line in left if "bandwatch:" in line]
    dots = [line.removeprefix("test_suite.py ") for line in left if _DOTS.fullmatch(line)]
    assert len(re.sub(r"[^.F]", "", "".join(dots))) == CASES
    assert f"{CASES - 1} passed" in " ".join(left)
