"""How a project's suite is built and run in a fresh process: `[tool.bandwatch.ci]`.

[tool.bandwatch.ci]
build = ["make", "kernels"]         # run in each checkout before it is measured; no shell
arguments = ["--bandwatch-mode", "cold"]   # further arguments of pytest
time_limit_s = 3600                 # of one process
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tracker.config import PROJECT_FILE, read_table
from tracker.errors import ConfigError

_SECTION = "[tool.bandwatch.ci]"
_KEYS = ("build", "arguments", "time_limit_s", "page")
TIME_LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """`suite` are the paths given to pytest, empty for its own choice; `python` the interpreter."""

    suite: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    time_limit_s: float = TIME_LIMIT_S
    page: str | None = None
    python: str = sys.executable


def read_loop_settings(root: Path, suite: tuple[str, ...] = ()) -> LoopSettings:
    """Return the settings of the project in `root`.

    Raises ConfigError for an unknown key or a value of the wrong kind.
    """
    table = _table(root / PROJECT_FILE)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise ConfigError(
            f"cannot use {_SECTION}: unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}"
        )
    limit = table.get("time_limit_s", TIME_LIMIT_S)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ConfigError(f"cannot use {_SECTION}: time_limit_s is {limit!r}, expected seconds > 0")
    page = table.get("page")
    if page is not None and not (
        isinstance(page, str) and page.startswith(("http://", "https://"))
    ):
        raise ConfigError(
            f"cannot use {_SECTION}: page is {page!r}, expected an address (https://)"
        )
    return LoopSettings(
        suite=suite,
        build=_words(table.get("build", []), "build"),
        arguments=_words(table.get("arguments", []), "arguments"),
        time_limit_s=float(limit),
        page=page,
    )


def _table(project: Path) -> Mapping[str, object]:
    if not project.is_file():
        return {}
    table = read_table(project).get("ci", {})
    if not isinstance(table, dict):
        raise ConfigError(f"cannot use {_SECTION}: expected a table, found {table!r}")
    return table


def _words(value: object, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ConfigError(
            f'cannot use {_SECTION}: {key} is {value!r}, expected a list of words such as ["make"]'
        )
    return tuple(value)
