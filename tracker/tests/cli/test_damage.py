"""A damaged store is told as such by every command, whatever is wrong in it, and never more broken."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tracker.tests.cli.conftest import Command

COMMANDS = (
    *("check", "list", "history relu", "compare latest", "triage list", "record run.json"),
    *("db info", "db check", "db upgrade", "db backup saved.db", "db copy runs.db copy.db"),
    *("db prune --older-than 1 --keep-runs 0 --apply", "export", "export --format csv"),
    *("export --format openmetrics", "export --format bmf"),
)


def scatter(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 3, 30, 300))):
        data[rng.randrange(len(data))] = rng.randrange(256)


def wipe(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice((16, 512, 4096, 20_000)))
    data[start:end] = bytes(end - start)


def swap(data: bytearray, rng: random.Random) -> None:
    one, other = (rng.randrange(len(data) // 4096) * 4096 for _ in range(2))
    data[one : one + 4096], data[other : other + 4096] = (
        data[other : other + 4096],
        data[one : one + 4096],
    )


def cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


@pytest.mark.parametrize("damage", [scatter, wipe, swap, cut])
def test_bytes_damaged_at_random_are_no_internal_error(
    filled: Path, bandwatch: Command, damage: Callable[[bytearray, random.Random], None]
) -> None:
    rng = random.Random(damage.__name__)
    whole = (filled / "runs.db").read_bytes()
    for command in (*COMMANDS, *COMMANDS):
        data = bytearray(whole)
        damage(data, rng)
        for path in (
            *filled.glob("runs.db?*"),
            *filled.glob("saved.db*"),
            *filled.glob("copy.db*"),
        ):
            path.unlink()
        (filled / "runs.db").write_bytes(data)
        answer = bandwatch(*command.split())
        assert "internal error" not in answer.err, command
        assert answer.err.count("\n") <= 1, command


@pytest.mark.parametrize(
    "store", ["none.db", "postgresql://u@127.0.0.1:1/x", "run.json", "runs.db"]
)
def test_a_store_that_is_away_is_not_blamed(
    filled: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("nobody foresaw this")

    del filled
    monkeypatch.setattr("tracker.cli.list_.overview", broken)
    monkeypatch.setattr("tracker.cli.doctor.examine", broken)
    command = "list" if store == "runs.db" else "doctor"
    answer = bandwatch(command, "--store", store)
    assert answer.code == (2 if store == "run.json" else 5), answer.err
    assert ("internal error: KeyError" in answer.err) == (store != "run.json")


@pytest.mark.parametrize(
    ("statement", "command"),
    [
        ("UPDATE environments SET body = replace(body, 'libraries', 'librarios')", "export"),
        ("UPDATE environments SET body = replace(body, 'libraries', 'librarios')", "list"),
        ("UPDATE runs SET detail = substr(detail, 2)", "check"),
        ("UPDATE runs SET statuses = '{'", "list"),
        ("UPDATE cases SET parameters = '7'", "history relu"),
        ("UPDATE facts SET body = '[]'", "export --format csv"),
    ],
)
def test_content_that_no_store_wrote_is_damage(
    filled: Path, bandwatch: Command, statement: str, command: str
) -> None:
    with sqlite3.connect(filled / "runs.db") as raw:
        raw.execute(statement)
    answer = bandwatch(*command.split())
    assert answer.code == 2
    assert "restore a backup" in answer.err
    assert answer.err.count("\n") == 1
    assert bandwatch("db", "check").code == 5
