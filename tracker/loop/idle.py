"""Plugins of pytest that a measuring process can do without: importing them takes its time.

One that is named anywhere pytest is configured, or in the files to be collected, is left alone.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tracker.config import PROJECT_FILE, read_tools
from tracker.errors import ConfigError

# What speaks of a plugin, by the name under which pytest knows it.
_SPEAKS_OF: Mapping[str, str] = {
    "anyio": r"anyio|trio|async\s+def",
    "hypothesispytest": r"hypothesis",
    "cacheprovider": r"cache|--lf|--ff|--nf|--sw|last-failed|failed-first|new-first|stepwise",
}
_CONFIGURATION = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")


def idle_plugins(
    folder: Path, places: Sequence[str], arguments: Sequence[str], addopts: str | None = None
) -> list[str]:
    """Return plugins to be left out when only the test files `places` of a checkout are collected.

    None where a whole suite is. `addopts` are arguments of the environment (PYTEST_ADDOPTS).
    """
    if not places:
        return []
    given = os.environ.get("PYTEST_ADDOPTS", "") if addopts is None else addopts
    texts = [*_texts(folder, places), " ".join(arguments), given]
    return [
        name for name, words in _SPEAKS_OF.items() if not any(re.search(words, t) for t in texts)
    ]


def _texts(folder: Path, places: Sequence[str]) -> Iterator[str]:
    """Yield the files that configure pytest, each conftest on the way, and the test files."""
    files = {folder / name for name in _CONFIGURATION}
    for place in places:
        path = folder / place
        files.add(path)
        files |= {
            parent / "conftest.py" for parent in path.parents if parent.is_relative_to(folder)
        }
    yield from (file.read_text("utf-8", "replace") for file in sorted(files) if file.is_file())
    yield _project_options(folder / PROJECT_FILE)


def _project_options(file: Path) -> str:
    """Return pytest's part of pyproject.toml: elsewhere plugins are named to be installed."""
    if not file.is_file():
        return ""
    try:
        return repr(read_tools(file).get("pytest", ""))
    except ConfigError:
        return file.read_text("utf-8", "replace")  # pytest will tell
