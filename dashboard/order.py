"""The order in which runs stand: that of their commits, not of when they were measured."""

from collections.abc import Sequence

from tracker import queries
from tracker.occasion import first_of_suite
from tracker.queries import RunInfo
from tracker.store import Store


def in_commit_order(store: Store, runs: Sequence[RunInfo]) -> list[RunInfo]:
    """Return runs in the order of their commits; those of other lines come by their start.

    The newest run of the suite is the end of the line: a commit measured later is not.
    """
    end = first_of_suite(runs) or next(iter(runs), None)
    if end is None or end.sha is None:
        return sorted(runs, key=lambda run: run.started)
    line = (end.sha, *queries.ancestors(store, end.sha))
    depth = {sha: place for place, sha in enumerate(line)}
    ordered = sorted(
        (run for run in runs if run.sha in depth),
        key=lambda run: (-depth[run.sha or ""], run.started),
    )
    for run in sorted((r for r in runs if r.sha not in depth), key=lambda r: r.started):
        after = sum(other.started <= run.started for other in ordered)
        ordered.insert(after, run)
    return ordered
