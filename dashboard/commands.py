"""Commands to copy: how to measure a case again at a commit, with everything quoted for a shell."""

import shlex

from dashboard.text import plain
from tracker.model import Case


def reproduce(case: Case, sha: str | None, test: str | None) -> str:
    """Return the command that measures one case at one commit again.

    `test` is the node id that pytest gave it; without it, the case is selected by its words.
    """
    checkout = f"git checkout {shlex.quote(plain(sha, 64))}\n" if sha else ""
    if test:
        return f"{checkout}pytest --benchmark {shlex.quote(plain(test, 500))}"
    words = f"{case.kernel} and {case.implementation} and {case.dtype}"
    return f"{checkout}pytest --benchmark -k {shlex.quote(plain(words))}"


def bisect(case: Case, good: str, bad: str) -> str:
    """Return the command that searches a commit range for the one that changed a case."""
    ends = " ".join(shlex.quote(plain(sha, 64)) for sha in (good, bad))
    return f"bandwatch bisect {case.fingerprint} {ends}"
