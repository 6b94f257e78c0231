"""Many writers at once and writers killed outright: whole runs only, each once, none lost."""

import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select

from tracker import queries
from tracker.model import Run
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_log, triage_states
from tracker.store.schema import ResultRow, RunRow, SampleRow
from tracker.tests.cluster import Cluster
from tracker.tests.factory import make_case, make_result, make_run, sha
from tracker.tests.processes import all_at_once, killed_after

CASES = tuple(make_result(make_case(n=1024 + n)) for n in range(40))


def run_of(name: str, cases: int) -> Run:
    return make_run(name, 1 + sum(name.encode()) % 50, results=CASES[:cases])


def assert_whole(store: Store) -> set[str]:
    """Check that every run has all its results and samples; return the ids of the runs."""
    with store.reading() as connection:
        runs = connection.execute(select(RunRow.id, RunRow.run_id, RunRow.results)).all()
        counted = select(ResultRow.run_id, func.count(), func.count(SampleRow.result_id))
        counted = counted.outerjoin(SampleRow, SampleRow.result_id == ResultRow.id)
        found = {
            row[0]: (row[1], row[2])
            for row in connection.execute(counted.group_by(ResultRow.run_id))
        }
    assert found == {run.id: (run.results, run.results) for run in runs}
    assert store.revision() == len(runs)
    assert sum(s.results for s in queries.series_list(store)) == sum(run.results for run in runs)
    return {run.run_id for run in runs}


def keep_recording(address: str, name: str, log: Path) -> None:
    with Store.open(address) as store, log.open("w") as stream:
        for number in range(10_000):
            run = run_of(f"{name}-{number:05}", 40)
            store.record(run)
            # Written only once the store has said that the run is in.
            stream.write(f"{run.run_id}\n")
            stream.flush()


def kill_repeatedly(address: str, folder: Path, tries: int) -> None:
    rng = random.Random(tries)
    reported: set[str] = set()
    for number in range(tries):
        log = folder / f"log-{number}"
        killed_after(
            partial(keep_recording, address, f"try-{number:03}", log), rng.uniform(0, 0.12), log
        )
        reported |= set(log.read_text().split("\n")[:-1])
    with Store.open(address) as store:
        held = assert_whole(store)
        assert reported <= held
        # Of each try at most the run that was being reported when the kill came.
        assert len(held - reported) <= tries
        store.record(run_of("afterwards", 3))
        for run_id in random.Random(0).sample(sorted(held), min(5, len(held))):
            assert queries.load_run(store, run_id) == run_of(run_id, 40)


def test_killed_writers_leave_whole_runs_only(address: str, tmp_path: Path) -> None:
    kill_repeatedly(address, tmp_path, 20)


@pytest.mark.slow
def test_two_hundred_killed_writers_leave_whole_runs_only(address: str, tmp_path: Path) -> None:
    kill_repeatedly(address, tmp_path, 200)


def record_some(address: str, writer: int, count: int) -> None:
    with Store.open(address) as store:
        for number in range(count):
            assert store.record(run_of(f"writer-{writer:02}-{number:03}", 5)).inserted
            # What all writers record is in once, whoever was first.
            store.record(run_of(f"everyone-{number:03}", 5))


def write_together(address: str, writers: int, count: int) -> None:
    all_at_once([partial(record_some, address, writer, count) for writer in range(writers)])
    with Store.open(address) as store:
        held = assert_whole(store)
    expected = {f"writer-{w:02}-{n:03}" for w in range(writers) for n in range(count)}
    assert held == expected | {f"everyone-{n:03}" for n in range(count)}


def test_sixteen_writers_at_once_lose_and_duplicate_nothing(address: str) -> None:
    write_together(address, 16, 3)


@pytest.mark.slow
def test_sixteen_writers_of_fifty_runs_lose_and_duplicate_nothing(address: str) -> None:
    write_together(address, 16, 50)


def open_and_record(address: str, writer: int) -> None:
    with Store.open(address) as store:
        store.record(run_of(f"writer-{writer:02}", 2))


def test_processes_that_make_one_file_at_once_agree(tmp_path: Path) -> None:
    address = str(tmp_path / "new" / "store.db")
    all_at_once([partial(open_and_record, address, writer) for writer in range(6)])
    with Store.open(address) as store:
        assert len(assert_whole(store)) == 6


@pytest.mark.postgres
def test_processes_that_make_one_server_store_at_once_agree(cluster: Cluster) -> None:
    cluster.execute("DROP DATABASE IF EXISTS fresh WITH (FORCE)", "CREATE DATABASE fresh")
    all_at_once([partial(open_and_record, cluster.url("fresh"), writer) for writer in range(6)])
    with Store.open(cluster.url("fresh")) as store:
        assert len(assert_whole(store)) == 6


def test_readers_see_whole_runs_while_others_write(address: str) -> None:
    def write() -> None:
        with Store.open(address) as store:
            for number in range(30):
                store.record(run_of(f"run-{number:05}", 20))

    def read() -> None:
        with Store.open(address, read_only=True) as store:
            revision = 0
            while revision < 30:
                table = queries.result_table(store, queries.runs(store, limit=None))
                assert set(Counter(table.run.tolist()).values()) <= {20}
                assert store.revision() >= revision
                revision = store.revision()

    all_at_once([write, read, read])


def decide(address: str, who: int) -> None:
    with Store.open(address) as store:
        for state in (TriageState.ACKNOWLEDGED, TriageState.ACCEPTED):
            add_triage(store, Triage("0" * 16, "NVIDIA H200", sha(2), state, f"person {who}"))


def test_people_who_decide_at_once_are_all_kept_in_one_order(address: str) -> None:
    all_at_once([partial(decide, address, who) for who in range(6)])
    with Store.open(address) as store:
        log = triage_log(store)
        assert Counter(entry.author for entry in log) == {f"person {n}": 2 for n in range(6)}
        # One change point, one state: that of the entry written last.
        assert list(triage_states(store).values()) == [log[-1]]
        assert store.revision() == 12


def test_the_check_of_whole_runs_sees_a_half_one(store: Store) -> None:
    store.record(run_of("run-00001", 3))
    with store.writing() as (connection, _):
        last = select(func.max(ResultRow.id)).scalar_subquery()
        connection.execute(delete(SampleRow).where(SampleRow.result_id == last))
    with pytest.raises(AssertionError):
        assert_whole(store)
