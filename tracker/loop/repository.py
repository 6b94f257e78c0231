"""What the loop asks of git beyond facts: lines of commits, differences, worktrees.

No hook of the project runs, nothing is passed to a shell.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracker import git
from tracker.errors import GitError
from tracker.last_words import telling_line
from tracker.report.escape import plain

_TIME_LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, by any folder of one of its checkouts."""

    root: Path

    def run(self, *arguments: str, check: bool = True) -> str:
        """Return what git prints, without the final newline; "" for a failure if not `check`.

        Raises GitError when git is missing, fails or takes too long.
        """
        command = ["git", "-c", "core.hooksPath=/dev/null", "-C", str(self.root), *arguments]
        shown = plain(" ".join(arguments[:2]))
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                env=outside_hooks(dict(os.environ)),
                timeout=_TIME_LIMIT_S,
                check=False,
            )
        except OSError as error:
            raise GitError(f"cannot run git {shown}: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {shown} took longer than {_TIME_LIMIT_S} s") from None
        if done.returncode and check:
            raise GitError(f"git {shown} failed in {self.root}: {telling_line(done.stderr)}")
        return done.stdout.rstrip("\n") if not done.returncode else ""

    def resolve(self, name: str) -> str:
        """Return the commit id that a branch, tag, id or expression such as main~3 names."""
        try:
            return git.resolve(name, self.root)
        except GitError as error:
            shallow = self.run("rev-parse", "--is-shallow-repository", check=False) == "true"
            hint = "; this clone is shallow: git fetch --unshallow" if shallow else ""
            raise GitError(f"{error}{hint}") from None

    def line(self, old: str, new: str, *, first_parent: bool = True) -> tuple[str, ...]:
        """Return the commits after `old` up to `new`, oldest first.

        Along first parents, or all of those between the two. Raises GitError when `old` is not an
        ancestor of `new`.
        """
        fork = git.merge_base(old, new, self.root)
        if fork != old:
            raise GitError(
                f"cannot list the commits from {old[:12]} to {new[:12]}: "
                f"the first is no ancestor of the second; {_instead(new, fork)}"
            )
        kind = "--first-parent" if first_parent else "--ancestry-path"
        return tuple(
            self.run("rev-list", "--reverse", "--topo-order", kind, f"{old}..{new}").split()
        )

    def changed_files(self, old: str, new: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits."""
        return tuple(self.run("diff", "--name-only", "--no-ext-diff", old, new).splitlines())


def _instead(new: str, fork: str | None) -> str:
    """Return what to give instead of two commits of which the first is no ancestor."""
    if fork == new:
        return "give the older one first"
    if fork is None:
        return "they have no commit in common: give two of one history"
    return f"both left the same line at {fork[:12]}: give that one first"


def outside_hooks(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment without what a hook that calls us has set for its own worktree."""
    kept = {k: v for k, v in environment.items() if not k.startswith("GIT_") or "GIT_CONFIG" in k}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def short(shas: Sequence[str]) -> str:
    """Return commit ids for people, at most three."""
    more = f" and {len(shas) - 3} more" if len(shas) > 3 else ""
    return ", ".join(sha[:12] for sha in shas[:3]) + more
