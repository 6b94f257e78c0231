"""Which commits may stand before a measured one, as git knows them."""

from pathlib import Path

from tracker import git
from tracker.errors import GitError
from tracker.model import Checkout


def line_of(checkout: Checkout, root: Path) -> tuple[str, ...] | None:
    """Return the commits before the measured one, newest first; None where git cannot tell.

    A pull request stands on the base that it was merged with, else on the merge base: its own
    earlier pushes are no baseline, or a loss would hide behind them.
    """
    if checkout.commit is None:
        return ()
    fork = fork_of(checkout)
    try:
        found = git.ancestors(root, fork or checkout.commit.sha)
    except GitError:
        return None
    return (fork, *found) if fork else found


def fork_of(checkout: Checkout) -> str | None:
    """Return the commit that a pull request stands on, None for any other checkout."""
    commit = checkout.commit
    if commit is None or checkout.head is None:
        return None
    merged = len(commit.parents) == 2 and commit.parents[1] == checkout.head
    return commit.parents[0] if merged else checkout.merge_base
