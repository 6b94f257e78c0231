"""Where a commit's own packages lie in its worktree, so that they are found before installed ones.

An editable install names folders of the checkout that it was made in. A worktree has the same ones
at the same places: those that its files declare, and those that this interpreter looks in.
"""

import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from pathlib import Path, PurePosixPath
from typing import Any

from tracker.config import PROJECT_FILE, read_tools
from tracker.errors import ConfigError
from tracker.loop.trees import Trees

# Where each build backend is told of a folder that packages lie in.
_FOLDERS = (
    "setuptools.packages.find.where",
    "setuptools.package-dir",
    "poetry.packages",
    "hatch.build.sources",
    "hatch.build.dev-mode-dirs",
    "hatch.build.targets.wheel.sources",
    "pdm.build.package-dir",
    "maturin.python-source",
    "uv.build-backend.module-root",
)
# Where it is told of the packages themselves.
_PACKAGES = (
    "hatch.build.packages",
    "hatch.build.targets.wheel.packages",
    "scikit-build.wheel.packages",
    "flit.module",
)


def import_places(trees: Trees) -> tuple[Path, ...]:
    """Return the folders to be looked in first for what `trees.own` brings, the best first."""
    own = trees.own
    projects = (own, *(own / place for place in trees.projects()))
    found = [place for project in projects for place in project_places(project)]
    found += [own / place for place in _looked_in(trees)]
    return tuple(dict.fromkeys(place for place in found if place.is_dir()))


def project_places(project: Path) -> tuple[Path, ...]:
    """Return a project's folder, and those in it in which its own packages lie."""
    found = (project, *_inside(project))
    return tuple(dict.fromkeys(place for place in found if place.is_dir()))


def _inside(project: Path) -> Iterator[Path]:
    """Yield the folders in a project that its files say packages lie in, and its `src`."""
    for place in _declared(project):
        path = PurePosixPath(place)
        if not path.is_absolute() and ".." not in path.parts:
            yield project / path
    source = project / "src"
    if not (source / "__init__.py").exists() and not _hides_library(source):
        yield source


def _hides_library(source: Path) -> bool:
    """Whether modules in a folder that nobody declared would stand before the standard library."""
    found = {path.parent.name for path in source.glob("*/__init__.py")}
    found |= {path.stem for path in source.glob("*.py")}
    return not sys.stdlib_module_names.isdisjoint(found)


def _declared(project: Path) -> Iterator[str]:
    try:
        tools = read_tools(project / PROJECT_FILE)
    except ConfigError:
        tools = {}  # who needs it will tell
    for key in _FOLDERS:
        yield from _folders(_at(tools, key))
    for key in _PACKAGES:
        yield from (str(PurePosixPath(name).parent) for name in _folders(_at(tools, key)))
    yield from _declared_old(project / "setup.cfg")


def _at(table: object, key: str) -> object:
    for word in key.split("."):
        table = table.get(word) if isinstance(table, Mapping) else None
    return table


def _folders(value: object) -> Iterator[str]:
    """Yield the folders in any of the forms that backends use."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _folders(item.get("from") if isinstance(item, Mapping) else item)
    elif isinstance(value, Mapping):
        # setuptools: {"" = "lib"}, {"edk" = "lib/edk"}; hatch: {"lib" = ""}, {"lib/edk" = "edk"}
        for name, folder in value.items():
            yield from _root_of(name, folder)
            yield from _root_of(folder, name)


def _root_of(name: Any, folder: Any) -> Iterator[str]:
    """Yield the folder that has to be looked in, so that `name` is found at `folder`."""
    words = tuple(str(name).replace("/", ".").split(".")) if name else ()
    parts = PurePosixPath(str(folder)).parts
    if parts and parts[len(parts) - len(words) :] == words:
        yield str(PurePosixPath(*parts[: len(parts) - len(words)]))


def _declared_old(file: Path) -> Iterator[str]:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(file, "utf-8")
    except (IniError, UnicodeError):
        return
    for line in parser.get("options", "package_dir", fallback="").splitlines():
        name, _, folder = line.partition("=")
        yield from _root_of(name.strip(), folder.strip())
    yield from parser.get("options.packages.find", "where", fallback="").split()


def _looked_in(trees: Trees) -> Iterator[Path]:
    """Yield folders of the repository that this interpreter looks in, as from a worktree's top.

    They are on its path, as by a .pth file, or in an import hook's map of names to places.
    """
    places = [Path(entry) for entry in sys.path if entry]
    for finder in sys.meta_path:
        for name, known in _known(finder).items():
            path = Path(known)
            path = path.parent if path.name == "__init__.py" else path.with_suffix("")
            parts = tuple(str(name).split("."))
            if path.parts[-len(parts) :] == parts:
                places.append(path.parents[len(parts) - 1])
    for place in places:
        if (found := trees.place(place)) is not None:
            yield found


def _known(finder: object) -> Mapping[str, str]:
    """Return the places that the hook of an editable install knows, by the modules' names."""
    module = sys.modules.get(str(getattr(finder, "__module__", "")))
    found = getattr(finder, "known_source_files", None) or getattr(module, "MAPPING", None)
    return found if isinstance(found, Mapping) else {}
