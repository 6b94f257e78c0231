"""Commits checked out side by side, each built once, in a folder of their own."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tracker.errors import GitError, TrackerError
from tracker.last_words import read_log
from tracker.loop.processes import Running
from tracker.loop.repository import Repository
from tracker.loop.settings import LoopSettings

BUILD_LOG = "build.log"


class BuildError(TrackerError):
    """A commit that cannot be built or whose suite cannot be collected: skipped, not judged."""


@dataclass(slots=True)
class Worktrees:
    """Makes worktrees under `folder` and builds each at most once; use `worktrees`."""

    repository: Repository
    folder: Path
    settings: LoopSettings
    _built: dict[str, Path] = field(default_factory=dict)
    _broken: dict[str, str] = field(default_factory=dict)

    def at(self, sha: str) -> Path:
        """Return a folder with that commit checked out and built.

        Raises BuildError when its build command fails, the second time without trying again.
        """
        self.prepare((sha,))
        if sha in self._broken:
            raise BuildError(self._broken[sha])
        return self._built[sha]

    def prepare(self, shas: Iterable[str]) -> None:
        """Check commits out and build them, all builds at once; `at` tells of those that fail."""
        new = [sha for sha in dict.fromkeys(shas) if sha not in {*self._built, *self._broken}]
        paths = {sha: self.folder / sha[:16] for sha in new}
        for sha, path in paths.items():
            self._check_out(sha, path)
        with ExitStack() as stack:
            builds = {
                sha: stack.enter_context(
                    _started(path, self.settings, path.with_name(f"{path.name}.{BUILD_LOG}"))
                )
                for sha, path in paths.items()
            }
            for sha, finish in builds.items():
                try:
                    finish()
                except BuildError as error:
                    self._broken[sha] = f"{sha[:12]}: {error}"
                else:
                    self._built[sha] = paths[sha]

    def close(self) -> None:
        """Remove every worktree."""
        for path in self.folder.glob("*"):
            if path.is_dir():
                self._remove(path)

    def forget(self, sha: str) -> None:
        """Remove one commit's worktree, where many are visited one after the other."""
        path = self._built.pop(sha, None)
        if path is not None:
            self._remove(path)

    def _check_out(self, sha: str, path: Path) -> None:
        if path.exists():  # left by a run that was killed
            self._remove(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.repository.run("worktree", "prune")
        self.repository.run("worktree", "add", "--quiet", "--detach", "--force", str(path), sha)
        if (path / ".gitmodules").is_file():
            inside = Repository(path)
            inside.run("submodule", "--quiet", "update", "--init", "--recursive")

    def _remove(self, path: Path) -> None:
        try:
            self.repository.run("worktree", "remove", "--force", "--force", str(path))
        except GitError:
            shutil.rmtree(path, ignore_errors=True)
            self.repository.run("worktree", "prune", check=False)


def build(folder: Path, settings: LoopSettings, log: Path) -> None:
    """Run the project's build command in a checkout, its output into `log`.

    Raises BuildError when it fails or takes too long. Without a command there is nothing to do.
    """
    with _started(folder, settings, log) as finish:
        finish()


@contextmanager
def _started(folder: Path, settings: LoopSettings, log: Path) -> Iterator[Callable[[], None]]:
    """Start a build; give what waits for it and raises BuildError where it fails."""
    command = settings.build
    if not command:
        yield lambda: None
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("wb") as output,
        Running(command, folder, output.fileno(), settings.time_limit_s) as running,
    ):
        yield partial(_finish, running, command, log)


def _finish(running: Running, command: Sequence[str], log: Path) -> None:
    code = running.wait()
    if code:
        why = "took too long" if code < 0 else f"exits {code}"
        said, where = read_log(log)
        raise BuildError(f"cannot build: `{' '.join(command)}` {why}: {said}; {where}")


@contextmanager
def worktrees(repository: Repository, folder: Path, settings: LoopSettings) -> Iterator[Worktrees]:
    """Give worktrees under `folder` and remove them at the end, whatever happens."""
    found = Worktrees(repository, folder, settings)
    try:
        yield found
    finally:
        found.close()
