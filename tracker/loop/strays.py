"""What a process imported that is not of its commit: whatever it measures would be a silent lie.

An import from the project's own checkout, or from a copy of it that was installed, is the same code
on both sides of a comparison whatever their commits say. A session in one worktree, of an
environment into which another was installed, would record that one's code under its own commit.
"""

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import GetSetDescriptorType, ModuleType

from tracker.errors import ExitCode
from tracker.loop.journal import Journal
from tracker.loop.layout import import_places, project_places
from tracker.loop.trees import Trees, foreign
from tracker.loop.worktrees import BuildError

TREES = "BANDWATCH_TREES"
_WHAT_TO_DO = (
    "have it found in each checkout: Python by pythonpath of [tool.pytest.ini_options], what is "
    "compiled beside its sources by build of [tool.bandwatch.ci]"
)
_IN_A_SESSION = (
    "name the folder of its packages in pythonpath of [tool.pytest.ini_options], run python -m "
    "pytest there where they lie at its top, or install that worktree"
)
_NAMESPACE: GetSetDescriptorType = vars(ModuleType)["__dict__"]


class StrayError(BuildError):
    """A commit whose process imported code of another one: nothing that it measured is its own."""

    exit_code = ExitCode.UNFIT


def prepare(folder: Path, order: Path) -> tuple[Path, ...]:
    """Write down for a measuring process what to look out for; return where it has to look first.

    A user's own checkout is measured as it is installed, what is not is found in it; of a worktree
    that the loop made everything comes before what is installed.
    """
    trees = Trees.of(folder)
    copies = trees.copies() if trees.is_side else ()
    first = import_places(trees) if trees.is_side else (folder,)
    last = () if trees.is_side else project_places(folder)
    asked = {
        "own": str(trees.own),
        "others": [str(tree) for tree in trees.others],
        "copies": sorted(map(str, copies)),
        "side": trees.is_side,
        "last": [str(place) for place in last if place not in first],
    }
    order.write_text(json.dumps(asked), "utf-8")
    return first


def refuse_strays(found: Journal, folder: Path, inside: Path, build: Sequence[str]) -> None:
    """Raise StrayError where a process imported another worktree's code, or an installed copy.

    What lies `inside` is this program's own part in that process, whatever project is measured.
    What a build command compiled and installed is this commit's where no other was built since:
    beside another side it is the same for both.
    """
    if not found.origins:
        return
    trees, ours = Trees.of(folder), inside.resolve()
    strays = foreign(trees, found.origins, found.looked_in)
    if trees.is_side:
        strays |= _copied(trees, found.origins, build)
    strays = {name: file for name, file in strays.items() if not file.is_relative_to(ours)}
    if strays:
        raise StrayError(_told(strays, folder))


def _copied(trees: Trees, origins: Mapping[str, str], build: Sequence[str]) -> dict[str, Path]:
    copies = trees.copies()
    found = {name: Path(file) for name, file in origins.items() if Path(file) in copies}
    compiled = tuple(EXTENSION_SUFFIXES) if build and trees.is_alone else ()
    return {name: file for name, file in found.items() if not file.name.endswith(compiled)}


def refuse_own_strays(folder: Path, apart: Path) -> None:
    """Raise StrayError where this process imported code of another worktree than the folder's.

    That is its source, or a copy that was installed from it. What lies in `apart` is this program's
    own and measures nothing.
    """
    trees = Trees.of(folder)
    if not trees.others:
        return
    copies = trees.copies_of_others()
    imported = _imported(trees.others, copies)
    strays = foreign(trees, imported, sys.path)
    strays |= {name: Path(file) for name, file in imported.items() if Path(file) in copies}
    strays = {name: file for name, file in strays.items() if not file.is_relative_to(apart)}
    if strays:
        tree = copies.get(strays[_outermost(strays)])
        source = f", installed from {tree}" if tree else ""
        raise StrayError(
            f"cannot record what is measured in {folder.name}: {_first(strays)}{source}, another "
            f"worktree's and not this one's; {_IN_A_SESSION}"
        )


def _imported(trees: Sequence[Path], copies: Collection[Path]) -> dict[str, str]:
    """Return the resolved files of this process's modules below one of the folders, or copied."""
    roots = tuple(f"{tree}{os.sep}" for tree in trees)
    copied = frozenset(map(str, copies))
    folders: dict[str, str] = {}
    found = {}
    for name, module in list(sys.modules.items()):
        file = _file(module)
        if file is None:
            continue
        folder, last = os.path.split(file)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder) + os.sep
        whole = folders[folder] + last
        if folders[folder].startswith(roots) or whole in copied:
            found[name] = whole
    return found


def _file(module: object) -> str | None:
    """Return what a module was loaded from, without loading one that waits to be asked for more.

    Some stand for a module and answer any question; some load all that they have as soon as one
    looks at them: so their class is not asked.
    """
    if not issubclass(type(module), ModuleType):
        return None
    file = _NAMESPACE.__get__(module).get("__file__")
    if not isinstance(file, str) or "\0" in file or not Path(file).is_absolute():
        return None
    return file


def _told(strays: Mapping[str, Path], folder: Path) -> str:
    return (
        f"cannot measure {folder.name}: {_first(strays)}, the same for every "
        f"commit and not this one's; {_WHAT_TO_DO}"
    )


def _first(strays: Mapping[str, Path]) -> str:
    """Say from where the outermost stray was imported, and how many there are besides."""
    name = _outermost(strays)
    more = f" ({len(strays) - 1} more like it)" if len(strays) > 1 else ""
    return f"{name} was imported from {strays[name]}{more}"


def _outermost(names: Iterable[str]) -> str:
    return min(names, key=lambda name: (name.count("."), name))
