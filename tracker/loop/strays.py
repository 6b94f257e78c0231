"""What a side imported that is not of its commit: a comparison with it would be a silent lie.

An import from the project's own checkout, or from a copy of it that was installed, is the same code
on both sides whatever their commits say.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

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


def _told(strays: Mapping[str, Path], folder: Path) -> str:
    name, file = min(strays.items(), key=lambda stray: (stray[0].count("."), stray[0]))
    more = f" ({len(strays) - 1} more like it)" if len(strays) > 1 else ""
    return (
        f"cannot measure {folder.name}: {name} was imported from {file}{more}, the same for every "
        f"commit and not this one's; {_WHAT_TO_DO}"
    )
