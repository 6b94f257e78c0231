"""The order of commits: parents before children, otherwise by commit time."""

import heapq
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from tracker.model import Commit
from tracker.queries.columns import raw, read_columns
from tracker.store import Store
from tracker.store.schema import CommitParentRow, CommitRow, Meta, RunRow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Graph:
    """All commits of a store: `number` is a commit's row id, rising, `place` its place in order.

    Columns of one length, `edges` pairs of child and parent by row id, first parents first.
    """

    number: NDArray[np.int64]
    sha: NDArray[np.str_]
    place: NDArray[np.int64]
    edges: NDArray[np.int64]

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of each row id; all have to be among these."""
        return np.searchsorted(self.number, numbers)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Row ids by sha."""
        return dict(zip(self.sha.tolist(), self.number.tolist(), strict=True))

    @cached_property
    def shas(self) -> Mapping[int, str]:
        """Shas by row id."""
        return dict(zip(self.number.tolist(), self.sha.tolist(), strict=True))

    @cached_property
    def places(self) -> Mapping[int, int]:
        """Places in order by row id."""
        return dict(zip(self.number.tolist(), self.place.tolist(), strict=True))

    @cached_property
    def parents(self) -> Mapping[int, tuple[int, ...]]:
        """Row ids of the parents by row id, the first parent first."""
        return _tuples(self.edges)


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
    query = select(*map(raw, (CommitRow.id, CommitRow.sha, CommitRow.committed)))
    ids, shas, committed = read_columns(connection, query.order_by(CommitRow.id))
    number, times = np.array(ids, np.int64), np.array(committed, np.float64)
    if np.isnan(times).any():
        times = _with_first_runs(connection, number, times)
    pairs = select(*map(raw, (CommitParentRow.commit_id, CommitParentRow.parent_id)))
    pairs = pairs.order_by(CommitParentRow.commit_id, CommitParentRow.position)
    edges = np.array(read_columns(connection, pairs), np.int64).T
    place = _places(number, times, edges)
    return Graph(number, np.array(shas, np.str_), place, edges)


def _with_first_runs(connection: Connection, number: NDArray[np.int64], times: Floats) -> Floats:
    """Return the times, those that are unknown as that of the commit's first measured run.

    A commit of which only the id is known stands where it was first measured.
    """
    first = select(RunRow.commit_id, func.min(RunRow.started)).group_by(RunRow.commit_id)
    measured = {row[0]: row[1] for row in connection.execute(first)}
    runs = np.array([measured.get(n, np.nan) for n in number.tolist()], np.float64)
    return np.where(np.isnan(times), runs, times)


def _places(
    number: NDArray[np.int64], times: Floats, edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return each commit's place in order."""
    # One without a time comes as soon as its parents allow.
    order = np.lexsort((number, np.where(np.isnan(times), -np.inf, times)))
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    child, parent = (place[np.searchsorted(number, ends)] for ends in edges.T)
    if (parent < child).all():
        # The usual case, and then what follows would give the same.
        return place
    told = (None if np.isnan(t) else t for t in times.tolist())
    found = in_order(dict(zip(number.tolist(), told, strict=True)), _tuples(edges))
    place[np.searchsorted(number, np.array(found, np.int64))] = np.arange(order.size)
    return place


def _tuples(edges: NDArray[np.int64]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for child, parent in edges.tolist():
        found.setdefault(child, []).append(parent)
    return {child: tuple(parents) for child, parents in found.items()}


def in_order(times: Mapping[int, float | None], parents: Mapping[int, Sequence[int]]) -> list[int]:
    """Return commits with parents before children, the earliest of those that may follow first.

    A commit without a time comes as soon as its parents allow. Commits in a cycle, which only a
    forged record can make, come last, by time.
    """
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


def measured_commits(store: Store) -> frozenset[str]:
    """Return the commits that were measured here; those of a demo are of another project."""
    with store.reading("read commits") as connection:
        runs = select(RunRow.commit_id).where(RunRow.demo.is_(False))
        measured = select(CommitRow.sha).where(CommitRow.id.in_(runs))
        return frozenset(connection.execute(measured).scalars())


def orphans(store: Store, reachable: Container[str]) -> tuple[str, ...]:
    """Return the measured commits that are not reachable: rebased, squashed or deleted ones.

    `reachable` is what git lists of all branches and tags (`tracker.git.reachable`).
    """
    with store.reading("read commits") as connection:
        measured = select(CommitRow.sha).where(CommitRow.id.in_(select(RunRow.commit_id)))
        return tuple(sha for sha in connection.execute(measured).scalars() if sha not in reachable)
