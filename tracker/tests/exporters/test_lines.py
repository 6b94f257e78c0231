"""A store as JSON lines and back: identical into an empty store, nothing lost or changed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tracker import queries
from tracker.errors import RecordError, StoreError
from tracker.exporters import Scope, export
from tracker.exporters.formats import write_whole
from tracker.importers import is_lines, restore
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.people import Waiver, add_waiver, waiver_log
from tracker.store.pruning import prune
from tracker.tests.factory import make_case, make_result, make_run
from tracker.tests.store.test_keeping import NOW, all_digests, fill

WHOLE = Scope()


@pytest.fixture
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    def make(engine: str) -> str:
        if engine == "sqlite":
            return str(tmp_path / "other.db")
        cluster = request.getfixturevalue("cluster")
        cluster.execute("DROP DATABASE IF EXISTS other WITH (FORCE)", "CREATE DATABASE other")
        return str(cluster.url("other"))

    return make


def fill_unevenly(store: Store) -> None:
    """Cases, environments and thinned runs in an order that no table is sorted by."""
    fill(store)
    add_waiver(store, Waiver("add/*", "Bob", "", "2028-01-01T00:00:00Z", "NVIDIA H200"))
    names = ("triton", "cuda_vector", "torch", "cuda_scalar")
    results = tuple(make_result(make_case(implementation=name)) for name in names)
    prune(store, now_s=NOW, older_than_days=1, keep_runs=1, apply=True)
    store.record(make_run("run-uneven-0001", 5, minute=100, results=results))
    store.record(make_run("run-uneven-0002", 4, minute=101, results=results[::-1]))


def exported(store: Store, path: Path) -> Path:
    write_whole(export(store, "jsonl", WHOLE, None), path)
    return path


@pytest.mark.parametrize(
    "target", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def test_an_empty_store_becomes_identical(
    store: Store, other: Callable[[str], str], target: str, tmp_path: Path
) -> None:
    fill_unevenly(store)
    file = exported(store, tmp_path / "all.jsonl")
    assert is_lines(file)
    with Store.open(other(target)) as copy:
        done = restore(file, copy)
        assert done.identical
        assert done.added["runs"] == 8
        assert all_digests(copy) == all_digests(store)
        assert list(check_store(copy)) == []
        again = exported(copy, tmp_path / "again.jsonl")
        assert again.read_bytes() == file.read_bytes()


def test_importing_an_export_twice_changes_nothing(store: Store, tmp_path: Path) -> None:
    fill_unevenly(store)
    before, revision = all_digests(store), store.revision()
    done = restore(exported(store, tmp_path / "all.jsonl"), store)
    assert (done.identical, done.held, sum(done.added.values())) == (False, 8, 0)
    assert all_digests(store) == before
    assert store.revision() == revision


def test_an_export_is_added_to_a_store_that_holds_runs(store: Store, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill_unevenly(source)
        file = exported(source, tmp_path / "all.jsonl")
        store.record(make_run("run-00000001", 1))
        store.record(make_run("run-of-our-own", 1, minute=55))
        done = restore(file, store)
        assert (done.identical, done.held, done.added["runs"]) == (False, 1, 7)
        assert queries.overview(store).runs == 9
        assert list(check_store(store)) == []
        assert waiver_log(store) == waiver_log(source)
        assert queries.load_run(store, "run-uneven-0002") == queries.load_run(
            source, "run-uneven-0002"
        )


def test_a_part_of_a_store_can_be_exported(store: Store, tmp_path: Path) -> None:
    fill(store)
    pieces = list(export(store, "jsonl", Scope(run="run-00000002"), None))
    runs = [json.loads(piece)["run"] for piece in pieces if piece.startswith(b'{"run"')]
    assert [run["run_id"] for run in runs] == ["run-00000002"]


def _cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _half_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[3][:40]]


def _one_less(lines: list[bytes]) -> list[bytes]:
    del lines[-4]
    return lines


def _changed(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"bytes_moved":536870912', b'"bytes_moved":536870913') for line in lines]


def _bad_commit(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"sha":"0', b'"sha":"x'), *lines[2:]]


def _without_digest(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"stored":{', b'"kept":{') for line in lines]


def _unknown(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b'{"what":1}\n', *lines[1:]]


def _nan(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"bytes_moved":536870912', b'"bytes_moved":NaN') for line in lines]


def _other_version(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"lines":1', b'"lines":2'), *lines[1:]]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_cut, "it ends before its last line; nothing was changed"),
        (_half_a_line, "line 4: not JSON"),
        (_one_less, "nothing was changed; export it again"),
        (_changed, "its content has another digest"),
        (_bad_commit, "is no commit"),
        (_without_digest, "it is malformed"),
        (_unknown, "expected one of commit, run, triage, waiver"),
        (_nan, "NaN is not JSON"),
        (_other_version, "version 1"),
    ],
)
def test_a_damaged_export_brings_nothing(
    store: Store, tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]], told: str
) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill(source)
        file = exported(source, tmp_path / "all.jsonl")
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordError, match=told):
        restore(file, store)
    assert queries.overview(store).runs == 0
    assert store.revision() == 0


def test_an_export_in_conflict_with_the_store_brings_nothing(store: Store, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill(source)
        file = exported(source, tmp_path / "all.jsonl")
    store.record(make_run("run-00000003", 3, command="another"))
    with pytest.raises(StoreError, match=r"run-00000003.*nothing was changed"):
        restore(file, store)
    assert queries.overview(store).runs == 1


def test_a_file_that_cannot_be_written_leaves_nothing(store: Store, tmp_path: Path) -> None:
    fill(store)
    with pytest.raises(RecordError, match="cannot write"):
        exported(store, tmp_path / "none" / "all.jsonl")
    assert list(tmp_path.glob("*.partial")) == []
