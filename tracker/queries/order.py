"""The order of commits: parents before children, otherwise by commit time."""

import heapq
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from tracker.model import Commit
from tracker.store import Store
from tracker.store.schema import CommitParentRow, CommitRow, Meta, RunRow


@dataclass(frozen=True, slots=True)
class Graph:
    """All commits of a store: row ids by sha and back, parents, and each one's place in order."""

    ids: Mapping[str, int]
    shas: Mapping[int, str]
    parents: Mapping[int, tuple[int, ...]]
    places: Mapping[int, int]


def graph(store: Store, connection: Connection) -> Graph:
    """Return the commit graph; kept until the store's revision changes."""
    revision = connection.execute(select(Meta.revision)).scalar_one()
    held = store.cache.get("graph")
    if held is None or held[0] != revision:
        held = (revision, _read(connection))
        store.cache["graph"] = held
    found: Graph = held[1]
    return found


def _read(connection: Connection) -> Graph:
    # A commit of which only the id is known stands where it was first measured.
    first = select(RunRow.commit_id, func.min(RunRow.started)).group_by(RunRow.commit_id)
    measured = {row[0]: row[1] for row in connection.execute(first)}
    rows = connection.execute(select(CommitRow.id, CommitRow.sha, CommitRow.committed)).all()
    parents: dict[int, list[int]] = {}
    edges = select(CommitParentRow.commit_id, CommitParentRow.parent_id)
    edges = edges.order_by(CommitParentRow.commit_id, CommitParentRow.position)
    for commit_id, parent_id in connection.execute(edges):
        parents.setdefault(commit_id, []).append(parent_id)
    times = {
        row.id: row.committed if row.committed is not None else measured.get(row.id) for row in rows
    }
    frozen = {child: tuple(found) for child, found in parents.items()}
    return Graph(
        ids={row.sha: row.id for row in rows},
        shas={row.id: row.sha for row in rows},
        parents=frozen,
        places={number: place for place, number in enumerate(in_order(times, frozen))},
    )


def in_order(times: Mapping[int, float | None], parents: Mapping[int, Sequence[int]]) -> list[int]:
    """Return commits with parents before children, the earliest of those that may follow first.

    A commit without a time comes as soon as its parents allow. Commits in a cycle, which only a
    forged record can make, come last, by time.
    """
    by_time = sorted(times, key=lambda n: (float("-inf") if (t := times[n]) is None else t, n))
    if _parents_first(by_time, parents):
        # The usual case, and then what follows would give the same.
        return by_time
    waiting = {child: len(set(found) & times.keys()) for child, found in parents.items()}
    children: dict[int, list[int]] = {}
    for child, found in parents.items():
        for parent in set(found) & times.keys():
            children.setdefault(parent, []).append(child)

    def key(number: int) -> tuple[float, int]:
        time = times[number]
        return (float("-inf") if time is None else time, number)

    ready = [key(number) for number in times if not waiting.get(number)]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for child in children.get(number, ()):
            waiting[child] -= 1
            if waiting[child] == 0 and child in times:
                heapq.heappush(ready, key(child))
    stuck = times.keys() - set(order)
    return order + sorted(stuck, key=key)


def _parents_first(order: Sequence[int], parents: Mapping[int, Sequence[int]]) -> bool:
    place = {number: index for index, number in enumerate(order)}
    return all(
        place.get(parent, -1) < index
        for number, index in place.items()
        for parent in parents.get(number, ())
    )


def ancestors(store: Store, sha: str, limit: int = 1000) -> tuple[str, ...]:
    """Return the ancestors of a commit as far as the store knows them, newest first, itself not.

    Prefer git's own answer (`tracker.git.ancestors`) where there is a checkout: the store knows
    only commits that were measured or learned, and their parents.
    """
    with store.reading("read ancestors") as connection:
        known = graph(store, connection)
    start = known.ids.get(sha)
    if start is None:
        return ()
    seen, stack = {start}, [start]
    while stack:
        for parent in known.parents.get(stack.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    seen.remove(start)
    newest = heapq.nlargest(limit, seen, key=lambda number: known.places[number])
    return tuple(known.shas[number] for number in newest)


def commits(store: Store, shas: Iterable[str]) -> dict[str, Commit]:
    """Return what the store knows of commits, by sha; unknown ones are left out."""
    with store.reading("read commits") as connection:
        known = graph(store, connection)
        wanted = [known.ids[sha] for sha in dict.fromkeys(shas) if sha in known.ids]
        rows: list[Any] = []
        for start in range(0, len(wanted), 1000):
            query = select(CommitRow.__table__).where(
                CommitRow.id.in_(wanted[start : start + 1000])
            )
            rows += connection.execute(query).all()
    return {
        row.sha: Commit(
            sha=row.sha,
            parents=tuple(known.shas[parent] for parent in known.parents.get(row.id, ())),
            author=row.author,
            author_time=row.author_time,
            commit_time=row.commit_time,
            subject=row.subject,
        )
        for row in rows
    }


def orphans(store: Store, reachable: Container[str]) -> tuple[str, ...]:
    """Return the measured commits that are not reachable: rebased, squashed or deleted ones.

    `reachable` is what git lists of all branches and tags (`tracker.git.reachable`).
    """
    with store.reading("read commits") as connection:
        measured = select(CommitRow.sha).where(CommitRow.id.in_(select(RunRow.commit_id)))
        return tuple(sha for sha in connection.execute(measured).scalars() if sha not in reachable)
