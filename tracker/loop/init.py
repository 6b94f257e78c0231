"""Another repository made ready: settings, a workflow, an example, a hook; nothing overwritten."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from tracker.config import PROJECT_FILE, read_tools
from tracker.errors import ConfigError, GitError
from tracker.loop.repository import Repository
from tracker.loop.source import Source

WORKFLOW = ".github/workflows/bandwatch.yml"
EXAMPLE = "benchmarks/test_example.py"
IGNORE = ".gitignore"
LABELS = "self-hosted, linux, x64, gpu"


class Outcome(StrEnum):
    """What became of a file."""

    WRITTEN = "written"
    EXTENDED = "extended"
    THERE = "already there"
    KEPT = "kept yours"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Done:
    """One file and what became of it."""

    path: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to write: labels of the runner, the branch whose history is kept, whether a hook.

    `files` false writes nothing but the hook. Without a `source` there is no workflow: what it
    would install on a GPU host is not known.
    """

    labels: str = LABELS
    branch: str = "main"
    hook: bool = False
    files: bool = True
    source: Source | None = None


# Asked before a file that differs is replaced; gets its path.
Ask = Callable[[str], bool]


def init(root: Path, wishes: Wishes, ask: Ask) -> tuple[Done, ...]:
    """Write the files into `root`; one that is there is replaced only if `ask` says so.

    Raises ConfigError for settings that cannot be read, a folder that cannot be written or is not
    the root of its repository, GitError where a hook is wanted outside a repository.
    """
    repository = top_folder(root)
    if repository is not None and repository != root.resolve():
        raise ConfigError(
            f"cannot make {root} ready: GitHub reads workflows at the root of a repository alone; "
            f"that is {repository}; call bandwatch init there"
        )
    if repository is None and wishes.hook:
        raise GitError(f"cannot write a hook: {root} is no git repository; call git init first")
    try:
        done = _files(root, wishes, ask) if wishes.files else []
        if wishes.hook:
            done.append(_hook(root, ask))
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename or root}: {error.strerror or error}; check what is "
            "there and its permissions"
        ) from None
    return tuple(done)


def top_folder(root: Path) -> Path | None:
    """Return the root of the git repository that a folder is in, None outside of one."""
    top = Repository(root).run("rev-parse", "--show-toplevel", check=False)
    return Path(top).resolve() if top else None


def _files(root: Path, wishes: Wishes, ask: Ask) -> list[Done]:
    return [
        _settings(root / PROJECT_FILE),
        _ignored(root / IGNORE),
        _workflow(root, wishes, ask),
        _file(root, EXAMPLE, _template("example.py.template"), ask),
    ]


def _workflow(root: Path, wishes: Wishes, ask: Ask) -> Done:
    if wishes.source is None:
        return Done(WORKFLOW, Outcome.LEFT_OUT)
    return _file(root, WORKFLOW, workflow(wishes, wishes.source, _own_packages(root)), ask)


def workflow(wishes: Wishes, source: Source, own: str = "") -> str:
    """Return the workflow for these wishes; `own` are pip's arguments for the project itself."""
    text = _template("workflow.yml")
    # In quotes: YAML takes some names for numbers or truth values.
    labels = ", ".join(f'"{label.strip()}"' for label in wishes.labels.split(","))
    filled = {
        "@LABELS@": labels,
        "@BRANCH@": wishes.branch,
        "@MEASURING@": source.requirement("gpu", "postgres"),
        "@JUDGING@": source.requirement(),
        "@OWN@": f" {own}" if own else "",
    }
    for mark, value in filled.items():
        text = text.replace(mark, value)
    return text


def _own_packages(root: Path) -> str:
    """Return what installs the project, else its requirements; "" where it has neither."""
    project = root / PROJECT_FILE
    content = tomllib.loads(project.read_text("utf-8")) if project.exists() else {}
    if not content.keys().isdisjoint({"project", "build-system"}) or (root / "setup.py").exists():
        return "."
    return "--requirement requirements.txt" if (root / "requirements.txt").exists() else ""


def _template(name: str) -> str:
    return files("tracker.loop").joinpath("templates", name).read_text("utf-8")


def _settings(path: Path) -> Done:
    """Add the section to pyproject.toml, at its end, where it has none."""
    section = _template("settings.toml")
    if not path.exists():
        path.write_text(section, "utf-8")
        return Done(PROJECT_FILE, Outcome.WRITTEN)
    if "bandwatch" in read_tools(path):
        return Done(PROJECT_FILE, Outcome.THERE)
    longer = _extended(path.read_bytes(), f"\n{section}")
    try:
        tomllib.loads(longer.decode())
    except tomllib.TOMLDecodeError as error:  # a table in braces takes nothing more
        raise ConfigError(
            f"cannot extend {path}: {error}; write [tool.bandwatch] into it by hand"
        ) from None
    path.write_bytes(longer)
    return Done(PROJECT_FILE, Outcome.EXTENDED)


def _extended(there: bytes, text: str) -> bytes:
    """Return a file with further lines, which end as its own do; what is there stays."""
    text = text if not there or there.endswith(b"\n") else f"\n{text}"
    ends = "\r\n" if b"\r\n" in there else "\n"
    return there + text.replace("\n", ends).encode()


def _ignored(path: Path) -> Done:
    line = ".bandwatch/"
    there = path.read_text("utf-8", "replace") if path.exists() else ""
    if line in there.splitlines():
        return Done(IGNORE, Outcome.THERE)
    if not there.strip():
        path.write_text(f"{line}\n", "utf-8")
        return Done(IGNORE, Outcome.WRITTEN)
    path.write_bytes(_extended(path.read_bytes(), f"{line}\n"))
    return Done(IGNORE, Outcome.EXTENDED)


def _file(root: Path, name: str, text: str, ask: Ask, *, executable: bool = False) -> Done:
    path = root / name
    if path.exists() or path.is_symlink():  # through a link, another place would be written
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
