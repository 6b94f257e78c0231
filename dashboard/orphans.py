"""Measured commits that have left git, told where the dashboard runs inside the project's checkout.

What git knows is not in the store: a rebase or a deleted branch writes nothing there, so it would
be wrong from then on. Away from a checkout, in a shallow clone and in another project's nothing is
known, and nothing is said.
"""

from pathlib import Path

import streamlit as st

from dashboard.data import Snapshot, measured_commits
from tracker.orphans import reach_of

LEFT_GIT = "commit left git"
# A push or a rebase shows after so long; to walk a large repository's history takes a second.
_KEPT_S = 60.0


def left_git(snapshot: Snapshot) -> frozenset[str]:
    """Return the measured commits to which no branch or tag of this folder's checkout leads."""
    at = (snapshot.store.name, snapshot.revision)
    return _left(str(Path.cwd()), at, measured_commits(snapshot))


@st.cache_data(ttl=_KEPT_S, max_entries=4, show_spinner=False)
def _left(folder: str, at: tuple[str, int], _measured: frozenset[str]) -> frozenset[str]:
    del at  # what was measured, as the cache's key
    reach = reach_of(Path(folder), _measured)
    return frozenset(sha for sha in _measured if reach.left(sha))
