"""The SQL of the manual, run as it stands there on a server."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tracker import queries
from tracker.errors import StoreError
from tracker.store import Store
from tracker.store.people import add_triage
from tracker.store.pruning import prune
from tracker.store.schema import Base
from tracker.tests.cluster import Cluster
from tracker.tests.factory import make_commit, make_run
from tracker.tests.store.test_postgresql import ENTRY, message_of

pytestmark = pytest.mark.postgres


def _blocks(heading: str) -> list[str]:
    """The SQL of one section of docs/operate.md, as it stands there."""
    text = (Path(__file__).parents[3] / "docs" / "operate.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```sql\n(.*?)```", section, re.DOTALL)


def _statements(block: str) -> list[str]:
    return [statement for part in block.split(";") if (statement := part.strip())]


@pytest.fixture
def documented(cluster: Cluster) -> Iterator[Callable[[str], str]]:
    """Addresses of the documented roles, made by the very statements of the manual."""
    administrator, owner = _blocks("Set up the shared database")
    roles = ("owner", "runner", "triage", "dashboard")
    cluster.execute(*_statements(administrator))
    address = {role: cluster.url("bandwatch", f"bandwatch_{role}", f"change-me-{n}")
               for n, role in enumerate(roles, start=1)}  # fmt: skip
    Store.open(address["owner"]).close()
    cluster.execute(*_statements(owner), database="bandwatch")
    yield address.__getitem__
    cluster.execute("DROP DATABASE bandwatch WITH (FORCE)")
    cluster.execute(*(f"DROP ROLE bandwatch_{role}" for role in roles))


def test_the_documented_roles_can_do_their_work_and_no_more(
    documented: Callable[[str], str],
) -> None:
    with Store.open(documented("runner")) as store:
        assert store.record(make_run()).inserted
        assert store.record(make_run("run-00000002", 2)).inserted
        assert not store.record(make_run()).inserted
        store.learn_commits([make_commit(9, [2])])
        with pytest.raises(StoreError, match="this role may not do that"):
            add_triage(store, ENTRY)
        with pytest.raises(StoreError, match="this role may not do that"):
            prune(store, now_s=4e9, older_than_days=1, keep_runs=0, apply=True)
    with Store.open(documented("triage")) as store:
        add_triage(store, ENTRY)
        with pytest.raises(StoreError, match="this role may not do that"):
            store.record(make_run("run-00000003", 3))
    with Store.open(documented("dashboard"), read_only=True) as store:
        assert queries.overview(store).runs == 2
        assert queries.load_run(store, "run-00000001") == make_run()
    assert "this role may not do that" in message_of(documented("dashboard"))
    with Store.open(documented("owner")) as store:
        assert prune(store, now_s=4e9, older_than_days=1, keep_runs=0, apply=True).runs == 2


def test_no_documented_role_but_the_owner_can_erase(documented: Callable[[str], str]) -> None:
    import psycopg

    for role in ("runner", "triage", "dashboard"):
        with psycopg.connect(documented(role), autocommit=True) as connection:
            for table in Base.metadata.tables:
                for statement in (
                    f"DELETE FROM {table}",
                    f"TRUNCATE {table}",
                    f"DROP TABLE {table}",
                ):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement.encode())


def test_the_documented_partitions_are_valid_sql(documented: Callable[[str], str]) -> None:
    import psycopg

    (block,) = _blocks("10 and 100 million results")
    with psycopg.connect(documented("owner")) as connection:
        for statement in _statements(block):
            connection.execute(statement.encode())
