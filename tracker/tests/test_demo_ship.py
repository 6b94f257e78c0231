"""A store's runs as shipped files: the same runs come back, marked, the planted one by its commit."""

from dataclasses import replace
from pathlib import Path

import pytest

from tracker.demo import planted, recorded_commits, recorded_runs
from tracker.demo.ship import NOTE, main, ship
from tracker.store import Store
from tracker.tests.factory import make_commit, make_run, sha


def fill(path: Path) -> str:
    address = f"sqlite:///{path}"
    with Store.open(address) as store:
        for number in (1, 2):
            store.record(make_run(f"run-0000000{number}", number))
        store.record(make_run("run-00000003", 2, dirty=True))
    return address


def test_shipped_runs_are_the_stored_ones_marked_as_demo(tmp_path: Path) -> None:
    address = fill(tmp_path / "a.db")
    ship(address, tmp_path, planted=sha(2))
    first, second = recorded_runs(tmp_path)
    assert first == replace(make_run("run-00000001", 1), demo=True)
    assert second == replace(make_run("run-00000002", 2), demo=True, notes=("first", NOTE))
    assert planted((first, second)) == (NOTE,)


def test_the_same_store_gives_the_same_bytes(tmp_path: Path) -> None:
    address = fill(tmp_path / "a.db")
    before = [path.read_bytes() for path in ship(address, tmp_path, None)]
    assert [path.read_bytes() for path in ship(address, tmp_path, None)] == before


def test_a_store_that_is_not_there_is_one_line_and_exit_2(tmp_path: Path) -> None:
    assert main([f"sqlite:///{tmp_path}/none.db", str(tmp_path)]) == 2


def test_commits_between_runs_ship_and_load_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = tuple(make_commit(n, (n - 1,)) for n in (4, 3, 2, 1))
    monkeypatch.setattr("tracker.git.history", lambda ref: chain[1:] if ref == sha(3) else ())
    address = f"sqlite:///{tmp_path}/a.db"
    with Store.open(address) as store:
        for number in (1, 3):
            store.record(make_run(f"run-0000000{number}", number))
    ship(address, tmp_path, None)
    assert [commit.sha for commit in recorded_commits(tmp_path)] == [sha(3), sha(2), sha(1)]
    assert recorded_commits(tmp_path)[0].parents == (sha(2),)
