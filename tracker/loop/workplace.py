"""Where a long command works: worktrees, journals and notes under `.bandwatch` in the project."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.config import Config, redact
from tracker.loop.ab import Bench
from tracker.loop.fresh import Measure, PytestMeasure
from tracker.loop.lock import held
from tracker.loop.repository import Repository
from tracker.loop.runs import Stamp
from tracker.loop.settings import read_loop_settings
from tracker.loop.worktrees import worktrees

FOLDER = ".bandwatch"
IGNORE = "# Made by bandwatch: results, not source.\n*\n"
_BUSY_S = 0.5


def own_folder(root: Path) -> Path:
    """Return the project's folder for results, made where it is missing and kept out of git."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(IGNORE, "utf-8")
    return folder


@contextmanager
def workplace(
    config: Config,
    name: str,
    progress: Callable[[str], None],
    measure: Measure | None = None,
) -> Iterator[Bench]:
    """Give a bench for one command; its journals are in a folder called `name`.

    Raises UnfitError while another such command works in this project.
    """
    settings = read_loop_settings(config.root, config.suite)
    folder = own_folder(config.root)
    with (
        held(folder / "loop.lock", _BUSY_S),
        worktrees(Repository(config.root), folder / "worktrees", settings) as trees,
    ):
        yield Bench(
            trees=trees,
            measure=measure or PytestMeasure(settings),
            folder=folder / name,
            # An address on the command line may hold a password; the command goes into the store.
            stamp=Stamp(redact(shlex.join(["bandwatch", *sys.argv[1:]]))[:2000]),
            progress=progress,
        )
