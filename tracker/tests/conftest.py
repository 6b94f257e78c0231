"""Stores on both engines for every test that asks for one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tracker.store import Store
from tracker.store.migrate import HEAD, VERSION_TABLE
from tracker.store.schema import Base
from tracker.tests.cluster import Cluster, running

ENGINES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
_SHARED = "store"
_EMPTY = f"TRUNCATE {', '.join(Base.metadata.tables)} CASCADE"
_FIRST = f"INSERT INTO meta VALUES (1, '{'0' * 32}', '2026-01-01T00:00:00+00:00', 0)"
_VERSION = f"UPDATE {VERSION_TABLE} SET version_num = '{HEAD}'"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server with an empty store; skips where there are no binaries."""
    with running() as server:
        server.execute(f"CREATE DATABASE {_SHARED}")
        Store.open(server.url(_SHARED)).close()
        yield server


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with an empty store, to be copied: migrating takes longer than copying."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    Store.open(str(path)).close()
    return path


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, once on each engine."""
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        shutil.copy(request.getfixturevalue("empty_file"), path)
        yield f"sqlite:///{path}"
        return
    server: Cluster = request.getfixturevalue("cluster")
    # Emptied, not made anew, which is much faster. A test that needs a second one asks for it.
    server.execute(_EMPTY, _FIRST, _VERSION, database=_SHARED)
    yield server.url(_SHARED)


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """An open, empty store, once on each engine."""
    with Store.open(address) as opened:
        yield opened


@pytest.fixture
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Addresses of further empty stores on an engine."""

    def make(engine: str) -> str:
        if engine == "sqlite":
            return str(tmp_path / "other.db")
        cluster = request.getfixturevalue("cluster")
        cluster.execute("DROP DATABASE IF EXISTS other WITH (FORCE)", "CREATE DATABASE other")
        return str(cluster.url("other"))

    return make
