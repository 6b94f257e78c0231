"""What the verdicts of a session will rest on: the commits before it, and their stored runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracker import git
from tracker.errors import GitError, StoreError
from tracker.lineage import fork_of, line_of
from tracker.loop.judging import scratch_store
from tracker.loop.waived import keep_waivers
from tracker.merge_base import base_of, line_from
from tracker.queries import ancestors, candidates, find_run, load_run
from tracker.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.loop.ci import Workshop
    from tracker.model import Checkout, Run

# Enough for the level of a series, repeats of its commits included.
_BASE_RUNS = 40


def line_before(shop: Workshop) -> Sequence[str]:
    """Return the commits that may stand before the measured one, newest first.

    By hand a branch stands on its merge base, as its pull request will. CI's branches without a
    pull request may live long: there every commit counts.
    """
    checkout, root = shop.checkout, shop.config.root
    base = None if shop.bench.stamp.ci else base_of(checkout, root)
    return line_from(base, root) if base else line_of(checkout, root) or ()


def keep_baseline(shop: Workshop) -> None:
    """Copy the runs that the verdicts will rest on out of the store."""
    session = shop.session
    if session.has("kept base"):
        return
    heads = session.runs("head")
    line: Sequence[str] = session.shas("ancestors")
    found: dict[str, Run] = {}
    file = shop.config.store.file
    if file is not None and not file.exists():  # the first run of all
        session.keep("base", ())
        return
    try:
        with Store.open(shop.config.store.url, read_only=True) as store:
            line = _known_line(store, shop, line)
            line = _line_with_results(store, shop, heads, line)
            for head in heads:
                fit = _candidates(store, head, line, shop.checkout)
                for run_id in fit or _elsewhere(store, head, line, shop.checkout):
                    found[run_id] = load_run(store, run_id)
            keep_waivers(session, store)
    except (StoreError, GitError) as error:
        session.note("problem", text=f"no baseline from the store: {error}")
    session.keep("base", found.values())


def _known_line(store: Store, shop: Workshop, line: Sequence[str]) -> Sequence[str]:
    """Return the line with what the store knows of it, where a shallow clone does not."""
    checkout = shop.checkout
    if not checkout.shallow or checkout.commit is None:
        return line
    # A shallow clone has the oldest commit's own words of its parents, not them.
    fork = fork_of(checkout)
    oldest = git.commit(line[-1], shop.config.root) if line and not fork else checkout.commit
    starts = (fork,) if fork else oldest.parents
    known = [sha for start in (*line, *starts) for sha in (start, *ancestors(store, start))]
    whole = tuple(dict.fromkeys(known))
    shop.session.note("ancestors", shas=list(whole))
    return whole


def _line_with_results(
    store: Store, shop: Workshop, heads: Sequence[Run], line: Sequence[str]
) -> Sequence[str]:
    """Return the line, or that of all ancestors where a merge base's has no result."""
    whole = line_of(shop.checkout, shop.config.root) or ()
    if set(whole) <= set(line) or any(
        _candidates(store, head, line, shop.checkout, own=False) for head in heads
    ):
        return line
    if any(_candidates(store, head, whole, shop.checkout, own=False) for head in heads):
        told = f"no result of the merge base {line[0][:12]}: judged against the nearest ancestor"
        shop.session.note("problem", text=f"{told}; --ab measures the merge base")
    shop.session.note("ancestors", shas=list(whole))
    return whole


def _elsewhere(store: Store, head: Run, line: Sequence[str], checkout: Checkout) -> tuple[str, ...]:
    """Return the id of the run of another environment by which the verdicts tell how it differs."""
    return _candidates(store, head, line, checkout, any_environment=True)[:1]


def _candidates(
    store: Store,
    head: Run,
    line: Sequence[str],
    checkout: Checkout,
    *,
    own: bool = True,
    any_environment: bool = False,
) -> tuple[str, ...]:
    """Return the ids of the runs that may be a baseline of a run which the store need not hold.

    With `own` earlier runs of the very commit are among them.
    """
    with scratch_store() as scratch:
        scratch.record(head)
        info = replace(find_run(scratch, head.run_id), number=-1)
    below = (checkout.commit.sha,) if checkout.dirty and checkout.commit else ()
    found = candidates(
        store,
        info,
        ancestors=(*below, *line),
        limit=_BASE_RUNS,
        any_environment=any_environment,
    )
    sha = checkout.commit.sha if checkout.commit and not checkout.dirty else None
    return tuple(
        run.run_id for run in found if run.run_id != head.run_id and (own or run.sha != sha)
    )
