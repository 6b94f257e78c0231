"""The worktrees of a repository, and which files of a process belong to another than its own."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distributions
from itertools import takewhile
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from tracker.config import PROJECT_FILE
from tracker.errors import GitError
from tracker.loop.repository import Repository

# Where the loop makes its worktrees below a project's root.
_SIDES = (".bandwatch", "worktrees")
_GIT = ".git"
CODE = (".py", *EXTENSION_SUFFIXES)
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class Trees:
    """The worktree that is measured, and all others of its repository, resolved paths."""

    own: Path
    others: tuple[Path, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return those of the repository that `folder` lies in; none others outside of one."""
        folder = folder.resolve()
        repository = Repository(folder)
        try:
            listed = repository.run("worktree", "list", "--porcelain")
        except GitError:
            return cls(folder)
        # One that was moved by hand is listed where it was.
        own = _top(repository) or folder
        return cls(own, tuple(tree for tree in _worktrees(listed) if tree != own))

    @property
    def is_side(self) -> bool:
        """Whether the loop made this worktree, rather than the user."""
        return _is_side(self.own)

    @property
    def is_alone(self) -> bool:
        """Whether the loop made no other worktree that is there now."""
        return not any(map(_is_side, self.others))

    def owner(self, path: Path) -> Path | None:
        """Return the innermost worktree that a resolved path lies in."""
        around = (tree for tree in (self.own, *self.others) if path.is_relative_to(tree))
        return max(around, key=_length, default=None)

    def place(self, path: Path) -> Path | None:
        """Return a path relative to the top of its worktree; None for no source of any of them."""
        path = path.resolve()
        tree = self.owner(path)
        return path.relative_to(tree) if tree and not self.is_tool(path) else None

    def is_tool(self, path: Path) -> bool:
        """Whether a path lies in an environment, or in another folder that was installed into."""
        tree = self.owner(path)
        if tree is None:
            return True
        if not _INSTALLED.isdisjoint(path.relative_to(tree).parts):
            return True
        environments = (Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix))
        return any(path.is_relative_to(e) and self.owner(e) == tree != e for e in environments)

    def projects(self) -> tuple[Path, ...]:
        """Return where in the repository projects lie that are installed here, from its top."""
        sources = (_source(found) for found in _distributions())
        places = (self.place(source) for source in sources if source and source.is_dir())
        return tuple(dict.fromkeys(place for place in places if place is not None))

    def copies(self) -> frozenset[Path]:
        """Return the files of the repository's own projects that were installed elsewhere."""
        name = _own_name(self.own / PROJECT_FILE)
        mine = (
            found
            for found in _distributions()
            if self._origin(found) is not None or (name is not None and _name(found) == name)
        )
        return frozenset(file for found in mine for file in _files(found))

    def copies_of_others(self) -> dict[Path, Path]:
        """Return the files that were installed from another worktree's projects, with that one."""
        origins = ((found, self._origin(found)) for found in _distributions())
        copied = ((found, tree) for found, tree in origins if tree and tree != self.own)
        return {file: tree for found, tree in copied for file in _files(found)}

    def _origin(self, found: Distribution) -> Path | None:
        """Return the worktree that a distribution was installed from, as one of its projects.

        What was cloned or downloaded to there is none of them.
        """
        source = _source(found)
        if source is None or self.place(source) is None:
            return None
        tree = self.owner(source)
        if source.is_dir():
            return None if _is_cloned(tree, source) else tree
        return tree if _is_built(tree, source, found) else None


def _top(repository: Repository) -> Path | None:
    """Return the worktree that a folder lies in, that of a submodule's git directory too."""
    top = repository.run("rev-parse", "--show-toplevel", check=False)
    return Path(top).resolve() if top else None


def _worktrees(listed: str) -> Iterator[Path]:
    """Yield the worktrees that git lists and that are there; what is bare is none."""
    for lines in (block.splitlines() for block in listed.split("\n\n")):
        folder = Path(lines[0].removeprefix("worktree ")) if lines else None
        if folder is None or "bare" in lines or not folder.is_dir():
            continue
        tree = folder.resolve() if (folder / _GIT).exists() else _top(Repository(folder))
        if tree is not None:
            yield tree


def _is_side(tree: Path) -> bool:
    return tree.parent.parts[-2:] == _SIDES


def _length(path: Path) -> int:
    return len(path.parts)


@cache
def _distributions() -> Sequence[Distribution]:
    return tuple(distributions())


@cache
def _source(found: Distribution) -> Path | None:
    """Return the folder or archive on this machine that a distribution was installed from."""
    try:
        address = urlsplit(json.loads(found.read_text("direct_url.json") or "{}").get("url", ""))
    except (ValueError, AttributeError):
        return None
    return Path(unquote(address.path)).resolve() if address.scheme == "file" else None


@cache
def _name(found: Distribution) -> str:
    return _normal(found.metadata["Name"] or "")


def _is_built(tree: Path | None, archive: Path, found: Distribution) -> bool:
    """Whether an archive in a worktree was built from it: by its name, or by the files in it."""
    around = [folder for folder in archive.parents if tree and folder.is_relative_to(tree)]
    if _name(found) in {_own_name(folder / PROJECT_FILE) for folder in around}:
        return True
    code = [str(file) for file in found.files or () if file.name.endswith(CODE)]
    places = (place for folder in around for place in (folder, folder / "src"))
    return any((place / file).is_file() for place in places for file in code)


def _own_name(project: Path) -> str | None:
    """Return the name of the distribution that a pyproject.toml describes."""
    try:
        table = tomllib.loads(project.read_text("utf-8")).get("project", {})
    except (OSError, ValueError):
        return None
    name = table.get("name") if isinstance(table, dict) else None
    return _normal(name) if isinstance(name, str) else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files(found: Distribution) -> Iterator[Path]:
    """Yield the files with code that a distribution has; what makes it editable is none."""
    for file in found.files or ():
        if file.name.endswith(CODE) and "editable" not in file.name:
            yield Path(str(found.locate_file(file))).resolve()


def foreign(trees: Trees, origins: Mapping[str, str], looked_in: Sequence[str]) -> dict[str, Path]:
    """Return the modules among `origins` that are another worktree's source, with their files.

    An ignored file counts where it lies beside files of git's, or is found by its name in a folder
    of the path that nothing was installed into: what is built is code, what is cached is not, nor
    is a script that was started, nor what was cloned.
    """
    path = {Path(entry).resolve() for entry in looked_in if entry}
    kept: dict[Path, bool] = {}
    found = {}
    for name, file in ((name, Path(text)) for name, text in origins.items()):
        tree = trees.owner(file)
        if tree in {None, trees.own} or trees.is_tool(file):
            continue
        root = _root(name, file)
        if file.parent not in kept:
            kept[file.parent] = _keeps(tree, file.parent)
        built = root in path and name != "__main__" and not any(root.glob("*.dist-info"))
        if kept[file.parent] or (built and not _is_cloned(tree, file.parent)):
            found[name] = file
    return found


def _is_cloned(tree: Path | None, folder: Path) -> bool:
    """Whether a folder lies in a repository that is none of its worktree's submodules."""
    inside = takewhile(lambda around: around != tree, (folder, *folder.parents))
    top = next((around for around in inside if (around / _GIT).exists()), None)
    return top is not None and not _listed(tree, top)


def _root(name: str, file: Path) -> Path:
    """Return the folder in which a module's outermost package lies."""
    depth = name.count(".") + (file.stem == "__init__")
    return file.parents[min(depth, len(file.parents) - 1)]


def _keeps(tree: Path | None, folder: Path) -> bool:
    """Whether git keeps files in a folder, those of submodules included."""
    return any(file.parent == folder for file in _listed(tree, folder))


def _listed(tree: Path | None, folder: Path) -> tuple[Path, ...]:
    """Return the files that git keeps below a folder, those of submodules included."""
    if tree is None:
        return ()
    listed = Repository(tree).run(
        "ls-files", "-z", "--recurse-submodules", "--", str(folder), check=False
    )
    return tuple(tree / name for name in listed.split("\0") if name)
