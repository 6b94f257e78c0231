"""Another repository made ready: settings, a workflow, an example, a hook; nothing overwritten."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from tracker import git
from tracker.config import PROJECT_FILE
from tracker.errors import ConfigError
from tracker.loop.repository import Repository

WORKFLOW = ".github/workflows/bandwatch.yml"
EXAMPLE = "perf/test_example.py"
IGNORE = ".gitignore"
LABELS = "self-hosted, linux, x64, gpu"


class Outcome(StrEnum):
    """What became of a file."""

    WRITTEN = "written"
    EXTENDED = "extended"
    THERE = "already there"
    KEPT = "kept yours"


@dataclass(frozen=True, slots=True)
class Done:
    """One file and what became of it."""

    path: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to write: labels of the runner, the branch whose history is kept, whether a hook.

    `files` false writes nothing but the hook.
    """

    labels: str = LABELS
    branch: str = "main"
    hook: bool = False
    files: bool = True


# Asked before a file that differs is replaced; gets its path.
Ask = Callable[[str], bool]


def init(root: Path, wishes: Wishes, ask: Ask) -> tuple[Done, ...]:
    """Write the files into `root`; one that is there is replaced only if `ask` says so.

    Raises ConfigError for settings that cannot be read or a folder that cannot be written,
    GitError where a hook is wanted outside a repository.
    """
    try:
        done = _files(root, wishes, ask) if wishes.files else []
        if wishes.hook:
            done.append(_hook(root, ask))
    except OSError as error:
        raise ConfigError(
            f"cannot write into {root}: {error.strerror or error}; check its permissions"
        ) from None
    return tuple(done)


def _files(root: Path, wishes: Wishes, ask: Ask) -> list[Done]:
    return [
        _settings(root / PROJECT_FILE),
        _ignored(root / IGNORE),
        _file(root, WORKFLOW, workflow(wishes), ask),
        _file(root, EXAMPLE, _template("example.py.template"), ask),
    ]


def workflow(wishes: Wishes) -> str:
    """Return the workflow for these wishes."""
    text = _template("workflow.yml")
    # In quotes: YAML takes some names for numbers or truth values.
    labels = ", ".join(f'"{label.strip()}"' for label in wishes.labels.split(","))
    filled = {"@LABELS@": labels, "@BRANCH@": wishes.branch, "@VERSION@": own_version()}
    for mark, value in filled.items():
        text = text.replace(mark, value)
    return text


def own_version() -> str:
    """Return the version of this distribution."""
    try:
        return version("bandwatch")
    except PackageNotFoundError:
        return "0"


def _template(name: str) -> str:
    return files("tracker.loop").joinpath("templates", name).read_text("utf-8")


def _settings(path: Path) -> Done:
    """Add the section to pyproject.toml, at its end, where it has none."""
    section = _template("settings.toml")
    if not path.exists():
        path.write_text(section, "utf-8")
        return Done(PROJECT_FILE, Outcome.WRITTEN)
    text = path.read_text("utf-8")
    try:
        known = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"cannot extend {path}: {error}; correct the file") from None
    if "bandwatch" in known:
        return Done(PROJECT_FILE, Outcome.THERE)
    path.write_text(f"{text.rstrip()}\n\n{section}", "utf-8")
    return Done(PROJECT_FILE, Outcome.EXTENDED)


def _ignored(path: Path) -> Done:
    line = ".bandwatch/"
    text = path.read_text("utf-8") if path.exists() else ""
    if line in text.splitlines():
        return Done(IGNORE, Outcome.THERE)
    before = f"{text.rstrip()}\n" if text.strip() else ""
    path.write_text(f"{before}{line}\n", "utf-8")
    return Done(IGNORE, Outcome.EXTENDED if before else Outcome.WRITTEN)


def _file(root: Path, name: str, text: str, ask: Ask, *, executable: bool = False) -> Done:
    path = root / name
    if path.exists():
        if path.is_file() and path.read_text("utf-8", "replace") == text:
            return Done(name, Outcome.THERE)
        if not path.is_file() or not ask(name):
            return Done(name, Outcome.KEPT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    if executable:
        path.chmod(0o755)
    return Done(name, Outcome.WRITTEN)


def _hook(root: Path, ask: Ask) -> Done:
    git.resolve("HEAD", root)  # a repository with a commit, or an error that says what is there
    folder = _hooks_folder(root)
    path = folder / "pre-push"
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    done = _file(folder, path.name, _template("pre-push"), ask, executable=True)
    return Done(shown, done.outcome)


def _hooks_folder(root: Path) -> Path:
    """Return where git looks for hooks: the folder that the settings name, else its own."""
    repository = Repository(root)
    for scope in ("--local", "--global"):
        chosen = repository.run("config", scope, "--get", "core.hooksPath", check=False)
        if chosen:
            return root / Path(chosen).expanduser()
    return (root / repository.run("rev-parse", "--git-common-dir")).resolve() / "hooks"
