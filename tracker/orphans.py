"""Commits that were measured and have left the repository since: rebased, squashed or deleted.

Their results stay; whoever reads them has to know that no branch leads there any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracker import git
from tracker.errors import GitError


@dataclass(frozen=True, slots=True)
class Reach:
    """What branches and tags of a checkout lead to; `why` says why that is unknown (None)."""

    commits: frozenset[str] | None
    why: str | None = None

    def left(self, sha: str | None) -> bool | None:
        """Return whether a commit has left; None where that cannot be told."""
        return None if self.commits is None or not sha else sha not in self.commits


def reach_of(root: Path, measured: Iterable[str]) -> Reach:
    """Return what leads to the measured commits in the checkout at `root`.

    Unknown outside a checkout, in a shallow clone, and where not one of them is of this project.
    """
    try:
        if git.is_shallow(root):
            return Reach(None, "shallow clone: which commits have left git is unknown")
        found = git.reachable(root)
    except GitError:
        return Reach(None)
    return Reach(found) if any(sha in found for sha in measured) else Reach(None)


def remark(reach: Reach, shas: Iterable[str | None]) -> tuple[str, ...]:
    """Return the notes on a list of runs' commits."""
    gone = {sha for sha in shas if reach.left(sha)}
    if not gone:
        return (reach.why,) if reach.why else ()
    several = f"{len(gone)} commits have" if len(gone) > 1 else "1 commit has"
    told = f"{several} left git: no branch or tag leads there (rebased, squashed or deleted)"
    return (f"{told}; the results stay",)
