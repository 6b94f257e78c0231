"""A store in trouble: one clear line, and no damage."""

import hashlib
import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from tracker import queries
from tracker.config import load_config
from tracker.errors import RecordError, StoreError
from tracker.model import Run
from tracker.record import load_run, write_run
from tracker.store import Store, engine, migrate
from tracker.store.address import parse_address
from tracker.store.copying import backup as back_up
from tracker.tests.factory import make_case, make_result, make_run
from tracker.tests.processes import all_at_once


@pytest.fixture
def path(tmp_path: Path, empty_file: Path) -> Path:
    """A file with one run in it."""
    path = tmp_path / "store.db"
    shutil.copy(empty_file, path)
    with Store.open(str(path)) as store:
        store.record(make_run())
    return path


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def refused(*parts: str) -> Iterator[None]:
    with pytest.raises(StoreError) as caught:
        yield
    message = str(caught.value)
    assert message.startswith("cannot ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def big_run(name: str = "run-00000002", cases: int = 400) -> Run:
    return make_run(name, 2, results=tuple(make_result(make_case(n=n)) for n in range(1, cases)))


def test_bad_input_leaves_every_byte_of_the_store(path: Path, tmp_path: Path) -> None:
    before = content(path)
    record = tmp_path / "run.json"
    write_run(make_run("run-00000003", 3), record)
    good = record.read_text()
    bad = {
        "truncated": good[:-20],
        "nan": good.replace("0.00013", "NaN", 1),
        "version": good.replace('"schema": 1', '"schema": 9'),
        "text": "hello",
        "large": good + " " * (33 * 1024 * 1024),
    }
    with Store.open(str(path)) as store:
        for value in bad.values():
            record.write_text(value)
            with pytest.raises(RecordError, match=r"cannot read"):
                store.record(load_run(record))
        with refused("other content", "nothing was changed"):
            store.record(make_run(notes=("changed",)))
        assert store.revision() == 1
    assert content(path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.json", "store.db"]


def test_a_store_newer_than_the_code_is_told(address: str) -> None:
    with Store.open(address) as store, store.writing() as (connection, _):
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'"))
    for read_only in (False, True):
        with refused("its schema is 9999, newer than this version's 0001", "upgrade bandwatch"):
            Store.open(address, read_only=read_only)


def test_a_store_older_than_the_code_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "VERSIONS", ("0001", "0002"))
    monkeypatch.setattr(migrate, "HEAD", "0002")
    with refused("its schema is 0001, older than this version's 0002", "bandwatch db upgrade"):
        Store.open(address)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("Dear diary, " * 100)
    before = content(path)
    with refused("no SQLite database"):
        Store.open(str(path))
    assert content(path) == before


def test_a_database_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = content(path)
    with refused("something else (tables bookmarks)"):
        Store.open(str(path))
    assert content(path) == before


def test_a_truncated_file_is_told(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size // 2)
    before = content(path)
    with refused("damaged", "backup"), Store.open(str(path)) as store:
        store.record(make_run("run-00000002"))
    assert content(path) == before


def test_damaged_pages_are_told(path: Path) -> None:
    with path.open("r+b") as stream:
        for page in range(1, path.stat().st_size // 4096):
            stream.seek(page * 4096)
            stream.write(os.urandom(64))
    with refused("damaged", "backup"), Store.open(str(path)) as store:
        queries.runs(store)


def test_a_folder_or_a_missing_file_is_told(tmp_path: Path) -> None:
    with refused("it is no file"):
        Store.open(str(tmp_path))
    with refused("there is no such file", "pytest --benchmark"):
        Store.open(str(tmp_path / "none.db"), read_only=True)
    assert not list(tmp_path.iterdir())


def test_an_empty_file_is_a_store_to_be_made_and_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    with refused("it is empty"):
        Store.open(str(path), read_only=True)
    with Store.open(str(path)) as store:
        assert store.revision() == 0


def test_a_new_folder_of_ours_keeps_the_store_out_of_commits(tmp_path: Path) -> None:
    Store.open(str(tmp_path / ".bandwatch" / "store.db")).close()
    assert (tmp_path / ".bandwatch" / ".gitignore").read_text() == "*\n"
    Store.open(str(tmp_path / "other" / "store.db")).close()
    assert not (tmp_path / "other" / ".gitignore").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refused("Not a directory"):
        Store.open(str(tmp_path / "file" / "store.db"))


def test_a_store_opened_for_reading_refuses_to_write(address: str) -> None:
    with Store.open(address, read_only=True) as store:
        with refused("opened for reading only"):
            store.record(make_run())
        with refused("opened for reading only"), store.writing():
            pass
        assert store.revision() == 0


def test_a_file_that_can_only_be_read_is_told(path: Path) -> None:
    url = parse_address(str(path))
    store = Store(url, engine.make_engine(url, read_only=True), read_only=False)
    with refused("can only be read"):
        store.record(make_run("run-00000002"))


def test_a_frozen_folder_can_be_read_without_files_beside(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Store.open(str(path), read_only=True) as store:
        assert store.revision() == 1
        assert [p.name for p in path.parent.iterdir()] == ["store.db"]
        other = tmp_path / "elsewhere"
        other.mkdir()
        assert back_up(store, other / "copy.db")
        assert [p.name for p in path.parent.iterdir() if p != other] == ["store.db"]


def test_a_full_disk_is_told_and_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = engine.open_file

    def on_a_small_disk(*arguments: Path, read_only: bool) -> sqlite3.Connection:
        connection = opened(*arguments, read_only=read_only)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        return connection

    monkeypatch.setattr(engine, "open_file", on_a_small_disk)
    with Store.open(str(path)) as store:
        with refused("the disk is full", "nothing was written", "free some space"):
            store.record(big_run())
        assert store.revision() == 1
    monkeypatch.undo()
    with Store.open(str(path)) as store:
        assert store.record(big_run()).inserted


def test_a_write_that_the_system_refuses_changes_nothing(path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, path.stat().st_size))
        with Store.open(str(path)) as store:
            with refused("the disk", "nothing was written"):
                store.record(big_run())
            assert store.revision() == 1

    all_at_once([limited])
    with Store.open(str(path)) as store:
        assert store.record(big_run()).inserted


def test_a_locked_store_is_told_after_a_wait(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 1.0)
    with Store.open(address) as holder, Store.open(address) as store:
        with holder.writing():
            with refused("the store is locked", "try again"):
                store.record(make_run())
            # Readers do not wait.
            assert queries.overview(store).runs == 0
        assert store.record(make_run()).inserted


def test_an_interrupted_write_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracker.store import writer

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "_count_series", stop)
    with pytest.raises(KeyboardInterrupt):
        store.record(make_run())
    monkeypatch.undo()
    assert store.revision() == 0
    assert queries.overview(store).results == 0
    assert store.record(make_run()).inserted


@pytest.mark.parametrize(
    "address",
    [
        "",
        " ",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://x/y",
        "postgresql://host",
        "postgresql://u:hunter2@[bad",
        "http://u:hunter2@x/y",
        "sqlite+aiosqlite:///x",
        "postgresql://u:hunter2@hunter2@127.0.0.1:1/x",
        "postgresql:/u:hunter2@127.0.0.1/x",
        "postgresql:u:hunter2/hunter2@127.0.0.1/x",
        "host=127.0.0.1 dbname=x password=hunter2",
        "dbname=x password = 'hunter2 hunter2'",
        "postgresql://u:hunter2/hunter2@127.0.0.1:port/x",
    ],
)
def test_an_address_that_is_none_is_told_without_secrets(address: str) -> None:
    with pytest.raises(StoreError, match="expected") as caught:
        Store.open(address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["a?b=c.db", "a#b.db", "a%41.db", "a b.db", "ä'.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    path = folder / name
    for address in (f"sqlite:///{path}", str(path)):
        with Store.open(address) as store:
            store.record(make_run())
        choice = load_config(address, start=tmp_path, environ={}).store
        assert choice.file == path
        with Store.open(choice.url, read_only=True) as store:
            assert queries.overview(store).runs == 1
            assert back_up(store, folder / "copy.db")
        with Store.open(str(folder / "copy.db"), read_only=True) as copy:
            assert queries.overview(copy).runs == 1
        (folder / "copy.db").unlink()
        path.unlink()
    assert [entry.name for entry in tmp_path.iterdir()] == [folder.name]


def test_measurements_that_do_not_fit_their_columns_are_told(store: Store) -> None:
    result = replace(make_result(), bytes_moved=2**63 - 1)
    assert store.record(make_run(results=(result,))).inserted
    assert queries.load_run(store, "run-00000001").results == (result,)


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (make_run("short"), "run_id must match"),
        (make_run(started_at="2026-03-01T00:00:00"), "started_at must match"),
        (make_run(results=(make_result(median_cycles=float("nan")),)), "median_cycles"),
        (make_run(results=(make_result(bytes_moved=1 << 63),)), "bytes_moved"),
        (make_run(results=(make_result(timer="x" * 3000),)), "timer must be shorter"),
        (make_run(results=(make_result(timer="a\x00b"),)), "timer"),
        (make_run(results=(make_result(timer="\ud800"),)), "timer"),
        (make_run(results=(make_result(), make_result())), "results[1].case is that of results[0]"),
        (make_run(results=(make_result(bytes_moved=object()),)), "bytes_moved"),
    ],
)
def test_a_run_that_no_record_could_hold_is_refused(store: Store, run: Run, part: str) -> None:
    with pytest.raises(RecordError, match="cannot read run") as caught:
        store.record(run)
    assert part in str(caught.value)
    assert store.revision() == 0
