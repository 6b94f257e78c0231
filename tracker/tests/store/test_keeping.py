"""Keeping a store for years: copies, backups, checks, pruning, and the way up."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text, update

from tracker import queries
from tracker.errors import StoreError
from tracker.model import Status
from tracker.store import Store, copying, migrate
from tracker.store.checking import check_store
from tracker.store.copying import backup, copy_store, digest_of, tables
from tracker.store.people import Triage, TriageState, Waiver, add_triage, add_waiver, triage_log
from tracker.store.pruning import prune
from tracker.store.schema import Base, ResultRow, SampleRow
from tracker.store.upgrading import store_info, upgrade_store
from tracker.tests.factory import H200, make_commit, make_result, make_run, sha

DAY = 86_400.0
NOW = 1_772_409_600.0 + 400 * DAY  # 2026-03-02 and 400 days


def fill(store: Store, runs: int = 4) -> None:
    for number in range(1, runs + 1):
        store.record(make_run(f"run-{number:08}", number))
    store.record(
        make_run(
            "run-failed-0001",
            2,
            minute=99,
            results=(make_result(status=Status.ERROR, measurements_s=(), summary=None),),
        )
    )
    store.record(
        make_run(
            "run-without-one",
            None,
            minute=98,
            environment=replace(H200, gpu_model="NVIDIA Ä100 'x'"),
        )
    )
    store.learn_commits([make_commit(9, [7, 8])])
    add_triage(store, Triage("0" * 16, "NVIDIA H200", sha(2), TriageState.NEW, "Ada"))
    add_waiver(store, Waiver("relu/*", "Ada", "é", "2027-01-01T00:00:00Z"))


def all_digests(store: Store) -> dict[str, tuple[int, str]]:
    with store.reading() as connection:
        return {table.name: digest_of(connection, table) for table in tables()}


@pytest.mark.parametrize(
    "target", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def test_a_copy_is_the_same_store(store: Store, other: Callable[[str], str], target: str) -> None:
    fill(store)
    with Store.open(other(target)) as copy:
        copied = copy_store(store, copy)
        assert all_digests(copy) == all_digests(store)
        assert copied.rows["runs"] == 6
        assert copied.rows["results"] == 11
        assert copied.digests["samples"] == all_digests(store)["samples"][1]
        assert copy.revision() == store.revision()
        assert list(check_store(copy)) == []
        assert queries.load_run(copy, "run-00000001") == make_run("run-00000001", 1)
        assert not copy.record(make_run("run-00000001", 1)).inserted
        assert copy.record(make_run("run-00000077", 3, minute=7)).inserted


def test_a_copy_into_a_filled_store_is_refused(store: Store, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "b.db")) as target:
        target.record(make_run())
        with pytest.raises(StoreError, match="holds 1 runs; expected an empty store"):
            copy_store(store, target)
        assert queries.overview(target).runs == 1


def test_a_copy_into_a_store_that_knows_commits_alone_is_refused(
    store: Store, tmp_path: Path
) -> None:
    fill(store)
    with Store.open(str(tmp_path / "b.db")) as target:
        target.learn_commits([make_commit(77)])
        with pytest.raises(StoreError, match="holds 1 commits; expected an empty store"):
            copy_store(store, target)
        assert target.revision() == 1


def test_a_copy_that_arrives_damaged_is_undone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    real = copying._copy_table

    def lossy(reader: object, writer: object, table: object) -> tuple[int, str]:
        found = real(reader, writer, table)  # type: ignore[arg-type]
        if table is ResultRow.__table__:
            writer.execute(update(ResultRow).where(ResultRow.id == 3).values(median_s=1.0))  # type: ignore[attr-defined]
        return found

    monkeypatch.setattr(copying, "_copy_table", lossy)
    with Store.open(str(tmp_path / "b.db")) as target:
        with pytest.raises(
            StoreError, match=r"table results arrived with 11 rows.*nothing was changed"
        ):
            copy_store(store, target)
        assert queries.overview(target).runs == 0
        assert target.revision() == 0


def test_a_backup_is_a_store_of_its_own(store: Store, tmp_path: Path) -> None:
    fill(store)
    path = tmp_path / "copy.db"
    size = backup(store, path)
    assert size == path.stat().st_size
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("copy")) == ["copy.db"]
    with Store.open(str(path), read_only=True) as copy:
        assert all_digests(copy) == all_digests(store)
    with pytest.raises(StoreError, match="it exists"):
        backup(store, path)


def test_a_backup_that_fails_leaves_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot"):
        backup(store, tmp_path / "absent" / "copy.db")
    assert not (tmp_path / "absent").exists()


def test_a_sound_store_has_no_findings(store: Store) -> None:
    assert list(check_store(store)) == []
    fill(store)
    assert list(check_store(store)) == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("DELETE FROM samples WHERE result_id = 3", "run run-00000002 has 2 results and 1 samples"),
        (
            "UPDATE results SET median_s = 1 WHERE id = 3",
            "run run-00000002 is not what was recorded",
        ),
        ("UPDATE results SET count = 7 WHERE id = 1", "run run-00000001 is not what was recorded"),
        (
            "UPDATE runs SET branch = 'x', detail = replace(detail, 'main', 'mine') WHERE id = 1",
            "run run-00000001 is not what was recorded",
        ),
        ("UPDATE runs SET detail = '{' WHERE id = 1", "run run-00000001 cannot be read"),
        ("UPDATE facts SET body = '[]' WHERE id = 1", "cannot be read"),
        (
            "UPDATE series SET results = results + 1 WHERE id = 1",
            "the series count 12 results; expected 11",
        ),
        ("UPDATE series SET last_started = 0 WHERE id = 1", "series 1 says ("),
        ("UPDATE series SET fingerprint = 'x' WHERE id = 1", "results of case 1 on GPU model 1 in"),
        ("UPDATE runs SET dirty = NOT dirty WHERE id = 1", "than it has: dirty"),
        ("UPDATE runs SET branch = 'x' WHERE id = 1", "than it has: branch"),
        ("UPDATE runs SET commit_id = 2 WHERE id = 1", "than it has: commit"),
        ("UPDATE runs SET commit_id = NULL WHERE id = 1", "than it has: commit"),
        ("DELETE FROM commit_parents WHERE commit_id = 3", "than it has: parents"),
        ("UPDATE commits SET committed = 7 WHERE id = 3", "than it has: committed"),
        ("UPDATE runs SET started = started + 1 WHERE id = 1", "than it has: started"),
        ("UPDATE runs SET statuses = '{}' WHERE id = 1", "than it has: statuses"),
        ("UPDATE environments SET fingerprint = 'x' WHERE id = 1", "than it has: environment"),
        ("UPDATE devices SET uuid = 'x' WHERE id = 1", "than it has: device"),
        ("UPDATE gpu_models SET name = 'x' WHERE id = 1", "than it has: gpu_model"),
        ("UPDATE results SET shared = NOT shared WHERE id = 1", "than it has: shared of relu"),
        ("UPDATE cases SET fingerprint = 'x' WHERE id = 1", "than it has: fingerprint of relu"),
        ("UPDATE cases SET label = 'x' WHERE id = 1", "than it has: label of relu"),
    ],
)
def test_each_kind_of_damage_is_found(store: Store, statement: str, finding: str) -> None:
    fill(store)
    with store.writing() as (connection, _):
        connection.execute(text(statement))
    assert any(finding in found for found in check_store(store))


def test_a_measurement_that_changed_by_one_bit_is_found(store: Store) -> None:
    fill(store)
    with store.writing() as (connection, _):
        rows = connection.execute(text("SELECT measurements FROM samples WHERE result_id = 1"))
        packed = bytearray(rows.scalar_one())
        packed[-1] ^= 1
        connection.execute(
            update(SampleRow).where(SampleRow.result_id == 1).values(measurements=bytes(packed))
        )
    assert list(check_store(store)) == [
        "run run-00000001 is not what was recorded: its content has another digest"
    ]


def test_rows_that_refer_to_nothing_are_found(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.open(str(path)) as store:
        fill(store)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM cases WHERE id = 1")
    with Store.open(str(path)) as store:
        assert any("refers to a row of cases" in found for found in check_store(store))


def test_a_dry_run_of_pruning_counts_and_changes_nothing(store: Store) -> None:
    fill(store)
    before = all_digests(store)
    would = prune(store, now_s=NOW, older_than_days=100, keep_runs=2, apply=False)
    assert (would.runs, would.samples) == (3, 6)
    assert would.bytes > 100
    assert all_digests(store) == before


def test_pruning_keeps_summaries_and_the_newest_runs(store: Store) -> None:
    fill(store)
    done = prune(store, now_s=NOW, older_than_days=100, keep_runs=2, apply=True)
    assert (done.runs, done.samples) == (3, 6)
    old = queries.load_run(store, "run-00000001")
    whole = make_run("run-00000001", 1)
    assert [r.summary for r in old.results] == [r.summary for r in whole.results]
    assert [r.measurements_s for r in old.results] == [(), ()]
    assert "thinned" in old.results[0].reasons["measurements_s"]
    assert queries.find_run(store, "run-00000001").thinned
    assert queries.load_run(store, "run-00000004") == make_run("run-00000004", 4)
    assert list(check_store(store)) == []
    # The same record is still known as the same, and a second pruning finds nothing more.
    assert not store.record(whole).inserted
    assert prune(store, now_s=NOW, older_than_days=100, keep_runs=2, apply=True).runs == 0
    assert len(triage_log(store)) == 1


def test_pruning_spares_what_is_young(store: Store) -> None:
    fill(store)
    assert prune(store, now_s=NOW, older_than_days=500, keep_runs=0, apply=True).runs == 0
    with pytest.raises(StoreError, match="expected 0 or more"):
        prune(store, now_s=NOW, older_than_days=-1, keep_runs=0, apply=True)


@pytest.mark.parametrize("days", [float("nan"), float("inf"), -float("inf")])
def test_days_that_are_no_number_prune_nothing(store: Store, days: float) -> None:
    fill(store)
    before = all_digests(store)
    with pytest.raises(StoreError, match="expected 0 or more"):
        prune(store, now_s=NOW, older_than_days=days, keep_runs=0, apply=True)
    assert all_digests(store) == before


def test_the_state_of_a_store_is_told(address: str) -> None:
    with Store.open(address) as store:
        fill(store)
    info = store_info(address)
    assert info.engine.startswith(("SQLite 3", "PostgreSQL 1"))
    assert (info.version, info.known) == (migrate.HEAD, migrate.HEAD)
    assert info.rows is not None
    assert (info.rows["runs"], info.rows["triage"], info.thinned_runs) == (6, 1, 0)
    assert info.oldest_run == "2026-03-02T00:01:00+00:00"
    assert info.newest_run == "2026-03-02T01:39:00+00:00"
    assert info.size_bytes > 10_000
    assert ":***@" in info.name or info.name.startswith("sqlite")


def test_the_state_of_an_unknown_schema_is_told_without_counts(address: str) -> None:
    with Store.open(address) as store, store.writing() as (connection, _):
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'"))
    info = store_info(address)
    assert (info.version, info.rows) == ("9999", None)
    with pytest.raises(StoreError, match="9999, newer than"):
        upgrade_store(address)


def test_there_is_nothing_to_tell_of_no_store(tmp_path: Path) -> None:
    for call in (store_info, upgrade_store):
        with pytest.raises(StoreError, match="there is no such file"):
            call(str(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())


def test_an_upgrade_of_a_current_store_does_nothing(address: str) -> None:
    done = upgrade_store(address)
    assert (done.before, done.after, done.backup) == (migrate.HEAD, migrate.HEAD, None)


def test_versions_are_those_of_the_scripts() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert tuple(s.revision for s in reversed(list(scripts.walk_revisions()))) == migrate.VERSIONS


def test_the_migrations_make_the_schema_of_the_models(store: Store) -> None:
    def ours(item: object, name: str | None, kind: str, *_: object) -> bool:
        return not (kind == "table" and name == migrate.VERSION_TABLE)

    with store.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": ours, "compare_type": True}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import command

    path = tmp_path / "s.db"
    with Store.open(str(path)) as store:
        fill(store)
        before = all_digests(store)
    monkeypatch.setattr(migrate, "VERSIONS", ("0001", "0002"))
    monkeypatch.setattr(migrate, "HEAD", "0002")

    def half(config: object, target: str) -> None:
        connection = config.attributes["connection"]  # type: ignore[attr-defined]
        connection.execute(text("DROP TABLE waivers"))
        connection.execute(text("INSERT INTO nowhere VALUES (1)"))

    monkeypatch.setattr(command, "upgrade", half)
    with pytest.raises(StoreError, match="cannot upgrade the store"):
        upgrade_store(str(path))
    monkeypatch.undo()
    (saved,) = tmp_path.glob("s.db.0001-*.backup")
    for file in (path, saved):
        with Store.open(str(file)) as store:
            assert all_digests(store) == before
