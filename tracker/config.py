"""Settings: which store, which suite, which thresholds, each with the place that it came from.

The store is, in this order: the flag, BANDWATCH_STORE, `[tool.bandwatch] store`, a SQLite file
beside pyproject.toml. A relative SQLite path counts from the folder of the file that names it;
in a flag or the environment, from the working folder.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL

from tracker.errors import ConfigError, StoreError
from tracker.store.address import file_of, parse_address, redact, shown
from tracker.thresholds import Thresholds, read_thresholds

__all__ = [
    "DEFAULT_STORE",
    "PROJECT_FILE",
    "STORE_VARIABLE",
    "TEAM_VARIABLE",
    "Config",
    "StoreChoice",
    "find_project",
    "load_config",
    "prepare_folder",
    "redact",
]
STORE_VARIABLE = "BANDWATCH_STORE"
TEAM_VARIABLE = "BANDWATCH_TEAM_STORE"
DEFAULT_STORE = "sqlite:///.bandwatch/bandwatch.db"
PROJECT_FILE = "pyproject.toml"
_KEYS = frozenset({"ci", "store", "suite", "team_store", "thresholds", "override"})


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """A store's URL and, for messages, where it was named."""

    # In no traceback either: it may hold a password.
    url: str = field(repr=False)
    source: str

    @property
    def shown(self) -> str:
        """The URL without credentials."""
        return shown(_parse(self.url, self.source))

    @property
    def file(self) -> Path | None:
        """The SQLite file, or None for a server's database."""
        return file_of(_parse(self.url, self.source))


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a project may set. `root` is the folder of its pyproject.toml.

    `team` is a store that results of a merge base may be read from, never written to.
    """

    root: Path
    store: StoreChoice
    suite: tuple[str, ...]
    thresholds: Thresholds
    team: StoreChoice | None = None


def load_config(
    flag: str | None = None,
    *,
    start: Path | None = None,
    here: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """Return the settings that hold in `start`; what the flag says counts from `here`.

    Both are the working folder when None.
    Raises ConfigError for an unknown key, a value of the wrong kind or a URL that is none.
    """
    start = (start or Path.cwd()).resolve()
    here = (here or start).resolve()
    project = find_project(start)
    table = read_table(project) if project else {}
    root = project.parent if project else start
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise ConfigError(
            f"cannot use {PROJECT_FILE}: [tool.bandwatch] has the unknown key {unknown[0]!r}; "
            f"known keys: {', '.join(sorted(_KEYS))}"
        )
    return Config(
        root=root,
        store=_choose_store(flag, environ, table, root=root, here=here),
        suite=_texts(table.get("suite", []), "suite"),
        thresholds=read_thresholds(table.get("thresholds", {}), table.get("override", [])),
        team=_choose_team(environ, table, root=root, here=here),
    )


def find_project(start: Path) -> Path | None:
    """Return the nearest pyproject.toml at or above `start`, or None."""
    candidates = (folder / PROJECT_FILE for folder in (start, *start.parents))
    return next((path for path in candidates if path.is_file()), None)


def prepare_folder(choice: StoreChoice) -> None:
    """Make the folder of a SQLite store, with a .gitignore that keeps it out of the repository.

    Raises ConfigError when the folder cannot be made.
    """
    file = choice.file
    if file is None or file.parent.is_dir():
        return
    try:
        file.parent.mkdir(parents=True)
        (file.parent / ".gitignore").write_text("# Made by bandwatch: results, not source.\n*\n")
    except OSError as error:
        raise ConfigError(
            f"cannot make the store's folder {file.parent}: {error.strerror or error}; "
            f"choose another with --store, {STORE_VARIABLE} or [tool.bandwatch] store"
        ) from None


def read_tools(project: Path) -> Mapping[str, object]:
    """Return the table `tool` of a pyproject.toml, empty where it has none.

    Raises ConfigError for a file that cannot be read or where that is no table.
    """
    try:
        document = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {project}: {_one_line(error)}; correct the file") from None
    tools = document.get("tool", {})
    if not isinstance(tools, dict):
        raise ConfigError(f"cannot use {project}: tool is not a table; correct the file")
    return tools


def read_table(project: Path) -> Mapping[str, object]:
    """Return the table `tool.bandwatch` of a pyproject.toml, empty where it has none.

    Raises ConfigError as `read_tools` does.
    """
    table = read_tools(project).get("bandwatch", {})
    if not isinstance(table, dict):
        raise ConfigError(f"cannot use {project}: tool.bandwatch is not a table")
    return table


def _choose_store(
    flag: str | None,
    environ: Mapping[str, str],
    table: Mapping[str, object],
    *,
    root: Path,
    here: Path,
) -> StoreChoice:
    if flag is not None:
        return _resolve(flag, "the flag", here)
    if environ.get(STORE_VARIABLE):
        return _resolve(environ[STORE_VARIABLE], STORE_VARIABLE, here)
    if "store" in table:
        value = table["store"]
        if not isinstance(value, str) or not value:
            raise ConfigError(
                f"cannot use [tool.bandwatch] store: found {value!r}, "
                f"expected a URL such as {DEFAULT_STORE}"
            )
        return _resolve(value, f"[tool.bandwatch] in {PROJECT_FILE}", root)
    return _resolve(DEFAULT_STORE, "the default", root)


def _choose_team(
    environ: Mapping[str, str], table: Mapping[str, object], *, root: Path, here: Path
) -> StoreChoice | None:
    if environ.get(TEAM_VARIABLE):
        return _resolve(environ[TEAM_VARIABLE], TEAM_VARIABLE, here)
    value = table.get("team_store")
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"cannot use [tool.bandwatch] team_store: found {value!r}, "
            "expected a URL such as postgresql://reader@host/bandwatch"
        )
    return _resolve(value, f"[tool.bandwatch] team_store in {PROJECT_FILE}", root)


def _resolve(text: str, source: str, base: Path) -> StoreChoice:
    url = _parse(text, source)
    file = file_of(url)
    if file is not None:
        # Not rendered as a URL, which would quote characters that a file's name may hold.
        return StoreChoice(f"sqlite:///{(base / file.expanduser()).resolve()}", source)
    return StoreChoice(url.render_as_string(hide_password=False), source)


def _parse(text: str, source: str) -> URL:
    try:
        return parse_address(text)
    except StoreError as error:
        raise ConfigError(f"{error} (named by {source})") from None


def _texts(value: object, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(
            f"cannot use [tool.bandwatch] {key}: expected a list of texts, found {value!r}"
        )
    return tuple(value)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
