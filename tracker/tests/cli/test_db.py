"""Keeping a store from the command line."""

import json
import sqlite3
from pathlib import Path

import pytest

from tracker import queries
from tracker.store import Store
from tracker.tests.cli.conftest import Command

pytestmark = pytest.mark.usefixtures("filled")


def test_info_tells_engine_schema_and_rows(bandwatch: Command) -> None:
    answer = bandwatch("db", "info", "--format", "json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert found["facts"]["schema"] == found["facts"]["known_schema"] == "0001"
    assert {row["table"]: row["rows"] for row in found["tables"]["tables"]}["runs"] == 4
    assert "schema 0001" in bandwatch("db", "info").out


def test_info_of_a_missing_store_is_wrong_use(bandwatch: Command) -> None:
    answer = bandwatch("db", "info", "--store", "none.db")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1


def test_copy_moves_everything_into_an_empty_store_only(bandwatch: Command) -> None:
    answer = bandwatch("db", "copy", "runs.db", "copy.db")
    assert answer.code == 0
    assert "copied and verified" in answer.out
    with Store.open("copy.db", read_only=True) as store:
        assert queries.overview(store).runs == 4
    again = bandwatch("db", "copy", "runs.db", "copy.db")
    assert again.code == 2
    assert "expected an empty store" in again.err


def test_backup_writes_a_new_file_only(bandwatch: Command, filled: Path) -> None:
    assert bandwatch("db", "backup", "saved.db").code == 0
    assert (filled / "saved.db").is_file()
    answer = bandwatch("db", "backup", "saved.db")
    assert answer.code == 2
    assert "it exists" in answer.err


def test_check_fails_on_damage(bandwatch: Command) -> None:
    assert bandwatch("db", "check").code == 0
    with sqlite3.connect("runs.db") as connection:
        connection.execute("UPDATE results SET median_s = 1 WHERE id = 1")
    answer = bandwatch("db", "check")
    assert answer.code == 5
    assert "is not what was recorded" in answer.out
    assert bandwatch("db", "check", "--quick").code == 0


def test_prune_counts_first_and_drops_when_told(bandwatch: Command) -> None:
    arguments = ("db", "prune", "--older-than", "0.001", "--keep-runs", "1", "--format", "json")
    first = json.loads(bandwatch(*arguments).out)
    assert (first["facts"]["applied"], first["facts"]["runs"]) == (False, 3)
    with Store.open("runs.db", read_only=True) as store:
        assert not any(run.thinned for run in queries.runs(store))
    assert json.loads(bandwatch(*arguments, "--apply").out)["facts"]["runs"] == 3
    with Store.open("runs.db", read_only=True) as store:
        assert [run.thinned for run in queries.runs(store)] == [False, True, True, True]


def test_prune_refuses_a_negative_age(bandwatch: Command) -> None:
    answer = bandwatch("db", "prune", "--older-than", "-1")
    assert answer.code == 2
    assert "expected 0 or more days" in answer.err


def test_upgrade_of_a_current_store_says_so(bandwatch: Command) -> None:
    answer = bandwatch("db", "upgrade")
    assert answer.code == 0
    assert "is at 0001 already" in answer.out
