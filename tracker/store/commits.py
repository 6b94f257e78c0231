"""The commit graph as all records together know it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from tracker.model import Commit
from tracker.store.prepare import epoch
from tracker.store.rows import chunks, ids_by_key, insert_all, next_id
from tracker.store.schema import CommitParentRow, CommitRow


def learn_commits(connection: Connection, commits: Sequence[Commit]) -> dict[str, int]:
    """Add what is new about commits, and return the ids of all that they name, by sha.

    What is known already stays as it is: a later record may fill a gap and never rewrite history.
    """
    shas = dict.fromkeys(sha for commit in commits for sha in (commit.sha, *commit.parents))
    ids = ids_by_key(connection, CommitRow, "sha", shas)
    fresh = [sha for sha in shas if sha not in ids]
    start = next_id(connection, CommitRow)
    ids |= {sha: start + offset for offset, sha in enumerate(fresh)}
    named = {commit.sha: commit for commit in commits}
    insert_all(
        connection,
        CommitRow,
        [{"id": ids[sha], "sha": sha, **_facts(named.get(sha))} for sha in fresh],
    )
    _complete(connection, [named[sha] for sha in named.keys() - set(fresh)])
    _link(connection, ids, named)
    return ids


def _facts(commit: Commit | None) -> dict[str, Any]:
    if commit is None:
        commit, known = Commit(""), False
    else:
        known = True
    return {
        "known": known,
        "author": commit.author,
        "author_time": commit.author_time,
        "commit_time": commit.commit_time,
        "committed": epoch(commit.commit_time) if commit.commit_time else None,
        "subject": commit.subject,
    }


def _complete(connection: Connection, commits: Sequence[Commit]) -> None:
    """Fill the gaps of commits that were known in part."""
    for chunk in chunks(commits):
        told = {commit.sha: _facts(commit) for commit in chunk}
        rows = connection.execute(select(CommitRow.__table__).where(CommitRow.sha.in_(told)))
        for held in rows.mappings().all():
            facts = told[held["sha"]]
            missing = {k: v for k, v in facts.items() if v is not None and not held[k]}
            if missing:
                connection.execute(
                    update(CommitRow).where(CommitRow.id == held["id"]).values(**missing)
                )


def _link(connection: Connection, ids: Mapping[str, int], named: Mapping[str, Commit]) -> None:
    """Add the edges to parents of commits that have none yet."""
    linked: set[int] = set()
    for chunk in chunks(ids[sha] for sha in named):
        linked |= set(
            connection.execute(
                select(CommitParentRow.commit_id).where(CommitParentRow.commit_id.in_(chunk))
            ).scalars()
        )
    edges = [
        {"commit_id": ids[sha], "position": position, "parent_id": ids[parent]}
        for sha, commit in named.items()
        if ids[sha] not in linked
        for position, parent in enumerate(commit.parents)
    ]
    insert_all(connection, CommitParentRow, edges)
