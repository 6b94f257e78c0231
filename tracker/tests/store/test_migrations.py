"""The way up: from every released schema, on both engines, with data; whole or not at all."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from tracker import queries
from tracker.errors import StoreError
from tracker.store import Store, migrate
from tracker.store.checking import check_store
from tracker.store.people import triage_log, waiver_log
from tracker.store.prepare import prepare
from tracker.store.upgrading import store_info, upgrade_store
from tracker.store.writer import Stored, write_run
from tracker.tests.exporters.test_round_trip import fill_unevenly
from tracker.tests.factory import make_run
from tracker.tests.processes import all_at_once, fork
from tracker.tests.store.snapshot import dump_of, load_database, load_file
from tracker.tests.store.test_keeping import all_digests

NEXT = "9998"
# What a later version might do: a column with a default, filled from another, and an index on it.
_SCRIPT = f"""
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{migrate.HEAD}", None, None


def upgrade():
    with op.batch_alter_table("runs") as batch:
        batch.add_column(sa.Column("double_", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE runs SET double_ = 2 * results")
    op.create_index("ix_runs_double", "runs", ["double_"])
    {{more}}
"""
_BROKEN = 'op.execute("DROP TABLE waivers"); op.execute("INSERT INTO nowhere VALUES (1)")'


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Addresses of stores as a released version left them, once on each engine."""

    def make(version: str) -> str:
        if request.param == "sqlite":
            load_file(version, tmp_path / "released.db")
            return str(tmp_path / "released.db")
        return load_database(version, request.getfixturevalue("cluster"), "released")

    return make


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make this code know one schema more, with a script that ends in `more`."""

    def make(more: str) -> None:
        folder = tmp_path / "migrations"
        (folder / "versions").mkdir(parents=True, exist_ok=True)
        known = migrate.SCRIPTS
        for file in ("env.py", *(f"versions/{p.name}" for p in (known / "versions").glob("0*.py"))):
            (folder / file).write_text((known / file).read_text())
        (folder / "versions" / "next.py").write_text(_SCRIPT.format(more=more))
        monkeypatch.setattr(migrate, "SCRIPTS", folder)
        monkeypatch.setattr(migrate, "VERSIONS", (*migrate.VERSIONS, NEXT))
        monkeypatch.setattr(migrate, "HEAD", NEXT)

    return make


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize("version", migrate.VERSIONS)
def test_every_schema_has_a_store_of_its_time(version: str, engine: str) -> None:
    assert dump_of(version, engine).is_file(), "python -m tracker.tests.store.snapshot"


@pytest.mark.parametrize("version", migrate.VERSIONS)
def test_a_store_of_any_released_schema_comes_up_with_all_its_data(
    released: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    address = released(version)
    upgrade_store(address)
    with Store.open(address) as store, Store.open(str(tmp_path / "fresh.db")) as fresh:
        fill_unevenly(fresh)
        assert list(check_store(store)) == []
        for info in queries.runs(fresh, limit=None):
            assert queries.load_run(store, info.run_id) == queries.load_run(fresh, info.run_id)
        assert queries.overview(store).runs == queries.overview(fresh).runs == 11
        assert [e.state for e in triage_log(store)] == [e.state for e in triage_log(fresh)]
        assert len(waiver_log(store)) == 3
        assert store.record(make_run("run-after-all-01", 9, minute=110)).inserted
        with pytest.raises(StoreError, match="append-only"), store.writing() as (connection, _):
            connection.execute(text("DELETE FROM triage"))


def doubles(address: str) -> list[int]:
    with Store.open(address) as store, store.reading() as connection:
        return list(connection.execute(text("SELECT double_ FROM runs")).scalars())


def test_an_upgrade_keeps_every_row_and_backs_a_file_up(
    released: Callable[[str], str], later: Callable[[str], None]
) -> None:
    before, address = migrate.HEAD, released(migrate.HEAD)
    with Store.open(address) as store:
        held = all_digests(store)
    later("")
    with pytest.raises(StoreError, match=f"older than this version's {NEXT}.*db upgrade"):
        Store.open(address)
    assert store_info(address).version == before
    done = upgrade_store(address)
    assert (done.before, done.after) == (before, NEXT)
    assert (done.backup is None) == ("postgresql" in address)
    with Store.open(address) as store:
        # The model of this code does not know the new column: what it knows is as it was.
        assert all_digests(store) == held
        assert store.record(make_run("run-after-all-01", 9, minute=110)).inserted
    # What is recorded by code that does not know the column gets its default.
    assert sorted(doubles(address)) == [0, 0, 2, 4, 4, 4, 4, 4, 4, 8, 8, 10]
    assert upgrade_store(address).backup is None
    if done.backup is not None:
        with closing(sqlite3.connect(done.backup)) as saved:
            assert saved.execute("SELECT count(*) FROM runs").fetchone() == (11,)
            assert saved.execute("SELECT * FROM bandwatch_version").fetchone() == (before,)


def test_an_upgrade_that_fails_half_way_leaves_the_store_as_it_was(
    released: Callable[[str], str], later: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = released(migrate.HEAD)
    with Store.open(address) as store:
        held = all_digests(store)
    later(_BROKEN)
    with pytest.raises(StoreError, match="cannot upgrade the store") as caught:
        upgrade_store(address)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    with Store.open(address) as store:
        assert all_digests(store) == held
        assert store.record(make_run("run-after-all-01", 9, minute=110)).inserted


def test_several_upgrades_at_once_are_one(
    released: Callable[[str], str], later: Callable[[str], None], tmp_path: Path
) -> None:
    address = released(migrate.HEAD)
    later("")

    def upgrade() -> None:
        upgrade_store(address)

    all_at_once([upgrade] * 5)
    with Store.open(address) as store:
        assert list(check_store(store)) == []
        assert queries.overview(store).runs == 11
    assert len(doubles(address)) == 11
    backups = list(tmp_path.glob("released.db.*.backup"))
    assert len(backups) <= 5
    for path in backups:
        with closing(sqlite3.connect(path)) as saved:
            assert saved.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_upgrade_waits_for_a_writer_and_old_code_cannot_write_after_it(
    released: Callable[[str], str],
    later: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    address, go = released(migrate.HEAD), tmp_path / "go"

    def upgrade_when_told() -> None:
        while not go.exists():
            time.sleep(0.005)
        upgrade_store(address)

    later("")
    # Forked while no store is open: SQLite forbids to take a connection into another process.
    child = fork(upgrade_when_told)
    monkeypatch.undo()
    with Store.open(address) as old:
        with old.writing() as (connection, revision):
            go.touch()
            time.sleep(0.4)
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            write_run(connection, prepare(make_run("run-before-it-01", 9)), Stored(revision))
        assert os.waitpid(child, 0)[1] == 0
        # Opened before the upgrade, by code that lacks what is new.
        with pytest.raises(StoreError, match=f"its schema is {NEXT}, newer than"):
            old.record(make_run("run-after-all-01", 9, minute=110))
    assert store_info(address).version == NEXT
    later("")
    assert sorted(doubles(address)) == [0, 2, 4, 4, 4, 4, 4, 4, 4, 8, 8, 10]
