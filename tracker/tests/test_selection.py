"""What makes a session a part of the suite."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracker.selection import narrowed_by

ROOT = Path("/project")
SUITE = (ROOT / "perftests",)


def narrowed(arguments: list[str], here: Path = ROOT, **options: Any) -> str | None:
    return narrowed_by(SimpleNamespace(**options), arguments, SUITE, here)


@pytest.mark.parametrize(
    ("arguments", "here"),
    [
        (["perftests"], ROOT),
        (["."], ROOT),
        (["kernels", "perftests", "tracker"], ROOT),
        (["/project/perftests/"], Path("/")),
        (["../perftests"], ROOT / "kernels"),
    ],
)
def test_paths_that_cover_the_suite_make_a_complete_run(arguments: list[str], here: Path) -> None:
    assert narrowed(arguments, here, keyword="", markexpr="", lf=False, deselect=None) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["kernels"],
        ["perftests/test_relu.py"],
        ["perftests/test_relu.py::test_relu"],
        ["perftests::x"],
        [],
    ],
)
def test_paths_that_leave_something_out_make_a_part(arguments: list[str]) -> None:
    assert narrowed(arguments) == "the paths given leave out perftests"


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"keyword": "relu"}, "-k"),
        ({"markexpr": "not slow"}, "-m"),
        ({"deselect": ["x"]}, "--deselect"),
        ({"ignore": ["x"]}, "--ignore"),
        ({"lf": True}, "--last-failed"),
        ({"bandwatch_quick": True}, "--bandwatch-quick"),
    ],
)
def test_a_selection_makes_a_part_and_is_named(options: dict[str, Any], flag: str) -> None:
    found = narrowed(["perftests"], **options)
    assert found is not None
    assert found.startswith(f"{flag} ")
