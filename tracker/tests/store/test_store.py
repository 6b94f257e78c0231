"""The store keeps what a record says, once, and refuses what contradicts it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from tracker import queries
from tracker.errors import StoreError
from tracker.exporters import Scope, export
from tracker.model import Run
from tracker.store import Outcome, Store
from tracker.store.checking import check_store
from tracker.store.reader import read_run
from tracker.store.schema import RunRow
from tracker.tests.factory import make_case, make_result, make_run


def stored(store: Store, run_id: str) -> Run:
    with store.reading() as connection:
        row = connection.execute(select(RunRow.id).where(RunRow.run_id == run_id)).scalar_one()
        return read_run(connection, row)


def test_a_recorded_run_comes_back_equal(store: Store) -> None:
    outcome = store.record(make_run())
    assert outcome.outcome is Outcome.INSERTED
    assert (outcome.run_id, outcome.results, outcome.revision) == ("run-00000001", 2, 1)
    assert stored(store, "run-00000001") == make_run()


def test_the_same_run_twice_changes_nothing(store: Store) -> None:
    store.record(make_run())
    again = store.record(replace(make_run(), results=make_run().results[::-1]))
    assert again.outcome is Outcome.UNCHANGED
    assert store.revision() == again.revision == 1


def test_a_password_in_a_record_is_not_stored(address: str, tmp_path: Path) -> None:
    url = "postgresql://ada:hunter2@db.example.org/x"
    run = make_run(
        command=f"PGPASSWORD=hunter2 pytest --bandwatch-store {url}",
        ci={"url": "https://ada:hunter2@example.org/1"},
        notes=(f"recorded into {url}?password=hunter2",),
    )
    with Store.open(address) as store:
        assert store.record(run).inserted
        assert not store.record(run).inserted
        held = queries.find_run(store, "latest")
        assert held.command == (
            "PGPASSWORD=*** pytest --bandwatch-store postgresql://ada:***@db.example.org/x"
        )
        assert list(check_store(store)) == []
        for form in ("jsonl", "csv"):
            pieces = export(store, form, Scope(), None)
            assert b"hunter2" not in b"".join(pieces)
    for path in tmp_path.glob("store.db*"):
        assert b"hunter2" not in path.read_bytes()


def test_a_hidden_password_makes_no_text_too_long(store: Store) -> None:
    note = "x" * 1988 + " password=1"
    assert len(note) == 1999
    assert store.record(make_run(notes=(note,))).inserted
    assert queries.find_run(store, "latest").notes[0].endswith(" password=*")


def test_one_run_id_with_other_content_is_a_conflict(store: Store) -> None:
    store.record(make_run())
    other = make_run(results=(make_result(make_case(n=7)),))
    with pytest.raises(StoreError, match=r"other content.*nothing was changed"):
        store.record(other)
    assert store.revision() == 1
    assert stored(store, "run-00000001") == make_run()


def test_readings_inside_one_moment_see_nothing_that_was_written_since(address: str) -> None:
    with Store.open(address) as writer, Store.open(address, read_only=True) as store:
        writer.record(make_run("run-00000001", 1))
        with store.one_moment():
            assert store.revision() == 1
            with store.one_moment():
                assert store.revision() == 1
            writer.record(make_run("run-00000002", 2))
            assert store.revision() == 1
        assert store.revision() == 2


def test_readings_of_another_thread_are_not_held_to_one_moment(address: str) -> None:
    with (
        Store.open(address) as writer,
        Store.open(address, read_only=True) as store,
        store.one_moment(),
        ThreadPoolExecutor(1) as pool,
    ):
        assert store.revision() == 0
        writer.record(make_run("run-00000001", 1))
        assert pool.submit(store.revision).result() == 1
        assert store.revision() == 0


def test_a_failure_inside_one_moment_ends_it(address: str) -> None:
    with Store.open(address) as store:
        with pytest.raises(ZeroDivisionError), store.one_moment():
            raise ZeroDivisionError
        store.record(make_run("run-00000001", 1))
        assert store.revision() == 1
