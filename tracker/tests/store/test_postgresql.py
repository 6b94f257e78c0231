"""A shared server: roles, secrets, restarts."""

import logging
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from tracker import queries
from tracker.cli.main import main
from tracker.config import load_config
from tracker.errors import StoreAwayError, StoreError
from tracker.exporters import Scope, export
from tracker.record import write_run
from tracker.store import Store
from tracker.store import store as store_module
from tracker.store.checking import check_store
from tracker.store.copying import backup
from tracker.store.people import Triage, TriageState, add_triage, triage_log
from tracker.store.schema import Base
from tracker.store.upgrading import store_info
from tracker.tests.cluster import Cluster
from tracker.tests.factory import make_run, sha

pytestmark = pytest.mark.postgres
SECRET = "hunter2:/@%"
ENTRY = Triage("0" * 16, "NVIDIA H200", sha(2), TriageState.NEW, "Ada")
ENCODED = "hunter2%3A%2F%40%25"


@pytest.fixture
def url(cluster: Cluster) -> str:
    """The address of a store that roles and restarts may spoil."""
    cluster.execute("DROP DATABASE IF EXISTS spoilt WITH (FORCE)", "CREATE DATABASE spoilt")
    Store.open(cluster.url("spoilt")).close()
    return cluster.url("spoilt")


@pytest.fixture
def reader(cluster: Cluster, url: str) -> Iterator[str]:
    """The address as the dashboard's role has it: it can only read."""
    del url
    cluster.execute(
        f"CREATE ROLE dashboard LOGIN PASSWORD '{SECRET}'",
        "GRANT CONNECT ON DATABASE spoilt TO dashboard",
    )
    cluster.execute(
        "GRANT USAGE ON SCHEMA public TO dashboard",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO dashboard",
        database="spoilt",
    )
    yield cluster.url("spoilt", "dashboard", ENCODED)
    cluster.execute("DROP OWNED BY dashboard", database="spoilt")
    cluster.execute("DROP ROLE dashboard")


def message_of(address: str) -> str:
    with pytest.raises(StoreError) as caught, Store.open(address) as store:
        store.record(make_run())
    message = str(caught.value)
    assert "\n" not in message
    assert "hunter2" not in message
    return message


def test_the_dashboards_role_reads_everything_and_writes_nothing(url: str, reader: str) -> None:
    with Store.open(url) as store:
        store.record(make_run())
    with Store.open(reader, read_only=True) as store:
        assert queries.overview(store).runs == 1
        assert queries.load_run(store, "run-00000001") == make_run()
    message = message_of(reader)
    assert "this role may not do that" in message
    assert "postgresql://dashboard:***@" in message
    with Store.open(url) as store:
        assert store.revision() == 1


def test_the_dashboards_role_cannot_touch_any_table(cluster: Cluster, reader: str) -> None:
    import psycopg

    dsn = (
        cluster.dsn("spoilt")
        .replace("user=owner", "user=dashboard")
        .replace(cluster.password, f"'{SECRET}'")
    )
    for table in Base.metadata.tables:
        for statement in (f"DELETE FROM {table}", f"TRUNCATE {table}", f"DROP TABLE {table}"):
            with (
                psycopg.connect(dsn) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(statement.encode())


def test_a_role_that_may_not_make_tables_is_told(cluster: Cluster, reader: str) -> None:
    cluster.execute("DROP DATABASE IF EXISTS bare WITH (FORCE)", "CREATE DATABASE bare")
    assert "this role may not do that" in message_of(reader.replace("/spoilt", "/bare"))
    cluster.execute("DROP DATABASE bare WITH (FORCE)")


def test_a_wrong_password_is_told_without_it(cluster: Cluster, url: str) -> None:
    message = message_of(cluster.url("spoilt", "owner", ENCODED))
    assert "refused this role" in message


def test_a_missing_database_or_server_is_told(cluster: Cluster) -> None:
    assert "no such database" in message_of(cluster.url("absent"))
    message = message_of(f"postgresql://u:{ENCODED}@127.0.0.1:1/x?sslpassword=hunter2")
    assert "cannot be reached" in message


def test_no_secret_reaches_the_log(
    cluster: Cluster, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        with Store.open(url) as store:
            store.record(make_run())
        message_of(cluster.url("spoilt", "owner", ENCODED))
    assert cluster.password not in caplog.text
    assert "hunter2" not in caplog.text


def test_no_command_shows_or_stores_a_password(
    cluster: Cluster, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.execute(f"CREATE ROLE keeper SUPERUSER LOGIN PASSWORD '{SECRET}'")
    address = cluster.url("spoilt", "keeper", ENCODED)
    record, saved, copy = (str(tmp_path / name) for name in ("run.json", "saved.db", "copy.db"))
    write_run(make_run(), record)
    commands = (
        ("record", record),
        ("import", record),
        ("list",),
        ("check",),
        ("history", "relu"),
        ("export",),
        ("export", "--format", "csv"),
        ("db", "info"),
        ("db", "check"),
        ("db", "upgrade"),
        ("db", "prune", "--older-than", "1", "--keep-runs", "0", "--apply"),
        ("db", "backup", saved),
        ("db", "backup", saved),
        ("record", record, "--store-that-is-none", address),
        ("--debug", "check", "no-such-run"),
    )
    told = ""
    for form in ([], ["--format", "json"]):
        for command in commands:
            more = [] if "export" in command else form
            main([*command, *more, "--store", address])
            out, err = capsys.readouterr()
            told += out + err
    main(["db", "copy", address, copy])
    main(["db", "copy", address, address])
    main(["--debug", "db", "info", "--store", address.replace("spoilt", "absent")])
    out, err = capsys.readouterr()
    told += out + err
    cluster.execute("DROP ROLE keeper")
    assert "postgresql://keeper:***@" in told
    assert "copied and verified" in told
    dump = [str(cluster.bin / "pg_dump"), "--inserts", "-d", cluster.dsn("spoilt")]
    stored = subprocess.run(dump, capture_output=True, check=True).stdout
    assert b"run-00000001" in stored
    for content in (told.encode(), stored, *(p.read_bytes() for p in tmp_path.iterdir())):
        assert SECRET.encode() not in content
        assert ENCODED.encode() not in content
        assert b"hunter2" not in content


def test_a_password_on_the_command_line_is_not_recorded_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracker.loop.workplace import workplace

    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.setattr("sys.argv", ["bandwatch", "ci", "--store", f"postgresql://u:{ENCODED}@h/d"])
    with workplace(load_config(start=tmp_path, environ={}), "ci", print) as bench:
        assert "hunter2" not in bench.stamp.command
        assert "postgresql://u:***@h/d" in bench.stamp.command


def test_the_dashboards_role_can_do_all_that_only_reads(
    url: str, reader: str, tmp_path: Path
) -> None:
    with Store.open(url) as store:
        store.record(make_run())
        add_triage(store, ENTRY)
    info = store_info(reader)
    assert info.rows is not None
    assert info.rows["runs"] == 1
    with Store.open(reader, read_only=True) as store:
        assert list(check_store(store)) == []
        assert triage_log(store)[0].author == "Ada"
        assert backup(store, tmp_path / "copy.db") > 0
        assert len(b"".join(export(store, "csv", Scope(), None))) > 1000
    with pytest.raises(StoreError, match="this role may not do that"), Store.open(reader) as store:
        add_triage(store, ENTRY)


# What a server says when it cannot write, whatever the cause: the message has to be ours.
_REFUSALS = {
    "53100": "the server's disk is full",
    "55P03": "the store is locked",
    "57014": "stopped it after its time limit",
    "25006": "it can only be read",
    "42501": "this role may not do that",
    "XX000": "on purpose",
}


@pytest.mark.parametrize("state", _REFUSALS)
def test_a_server_that_cannot_write_is_told_and_keeps_nothing(
    cluster: Cluster, url: str, state: str
) -> None:
    cluster.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END $$",
        "CREATE TRIGGER fails BEFORE INSERT ON samples EXECUTE FUNCTION fail()",
        database="spoilt",
    )
    assert _REFUSALS[state] in message_of(url)
    with Store.open(url) as store:
        assert (store.revision(), queries.overview(store).runs) == (0, 0)
        cluster.execute("DROP TRIGGER fails ON samples", database="spoilt")
        assert store.record(make_run()).inserted
        assert list(check_store(store)) == []


def test_a_server_without_a_free_connection_is_told(cluster: Cluster, url: str) -> None:
    cluster.execute("CREATE ROLE only_one LOGIN CONNECTION LIMIT 1 PASSWORD 'x'")
    cluster.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO only_one", database="spoilt")
    address = cluster.url("spoilt", "only_one", "x")
    with Store.open(address, read_only=True) as first, first.reading():
        assert "too many connections" in message_of(address)
    cluster.execute("DROP OWNED BY only_one", database="spoilt")
    cluster.execute("DROP ROLE only_one")


def test_a_restart_between_two_runs_goes_unnoticed(cluster: Cluster, url: str) -> None:
    with Store.open(url) as store:
        store.record(make_run())
        cluster.stop()
        cluster.start()
        assert store.record(make_run("run-00000002", 2)).inserted
        assert queries.overview(store).runs == 2


def test_a_server_that_comes_back_within_seconds_is_waited_for(cluster: Cluster, url: str) -> None:
    with Store.open(url) as store:
        cluster.stop()
        timer = threading.Timer(0.5, cluster.start)
        timer.start()
        assert store.record(make_run()).inserted
        timer.join()


def test_a_connection_cut_in_the_middle_is_tried_again(cluster: Cluster, url: str) -> None:
    cuts: list[str] = []
    with Store.open(url) as store:

        @event.listens_for(store.engine, "before_cursor_execute")
        def _cut(connection: object, cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("INSERT INTO samples") and not cuts:
                cuts.append(statement)
                cluster.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bandwatch'"
                )

        assert store.record(make_run()).inserted
        assert len(cuts) == 1
        assert store.revision() == 1
        assert queries.load_run(store, "run-00000001") == make_run()


def test_a_server_restarted_in_the_middle_of_a_run_is_waited_for(
    cluster: Cluster, url: str
) -> None:
    restarts: list[threading.Timer] = []
    with Store.open(url) as store:

        @event.listens_for(store.engine, "before_cursor_execute")
        def _restart(connection: object, cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("INSERT INTO samples") and not restarts:
                cluster.stop()
                restarts.append(threading.Timer(0.4, cluster.start))
                restarts[0].start()

        outcome = store.record(make_run())
        restarts[0].join()
        assert (outcome.inserted, outcome.revision) == (True, 1)
        assert list(check_store(store)) == []
        assert not store.record(make_run()).inserted


def test_a_server_that_dies_outright_keeps_what_it_reported(cluster: Cluster, url: str) -> None:
    with Store.open(url) as store:
        store.record(make_run())
        cluster.kill()
        cluster.start()
        # What a client sees at first is a broken connection, and then a server that recovers.
        assert store.record(make_run("run-00000002", 2)).inserted
        assert queries.overview(store).runs == 2
        assert list(check_store(store)) == []


def test_a_server_that_goes_away_is_no_damage(cluster: Cluster, url: str) -> None:
    with Store.open(url) as store:
        for number in (1, 2):
            store.record(make_run(f"run-{number:08}", number))
        seen = 0

        def after_the_counts(*_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == 3:
                cluster.kill()

        event.listen(store.engine, "begin", after_the_counts)
        try:
            with pytest.raises(StoreAwayError, match="went away"):
                list(check_store(store))
        finally:
            event.remove(store.engine, "begin", after_the_counts)
            cluster.start()
        assert list(check_store(store)) == []


def test_a_server_that_stays_away_is_an_error(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_RETRY_AFTER_S", (0.01, 0.02))
    with Store.open(url) as store:
        cluster.stop()
        try:
            started = time.monotonic()
            with pytest.raises(StoreError, match="cannot be reached or went away"):
                store.record(make_run())
            assert time.monotonic() - started < 20
        finally:
            cluster.start()
        assert store.record(make_run()).inserted


def test_another_schema_of_the_same_database_can_hold_a_store(cluster: Cluster, url: str) -> None:
    cluster.execute("CREATE SCHEMA team", database="spoilt")
    with Store.open(f"{url}?options=-csearch_path%3Dteam") as store:
        store.record(make_run())
        assert store.revision() == 1
    with Store.open(url) as store:
        assert store.revision() == 0


def test_a_database_of_something_else_with_our_names_is_told(cluster: Cluster, url: str) -> None:
    cluster.execute("CREATE SCHEMA other", "CREATE TABLE other.runs (x int)", database="spoilt")
    with pytest.raises(StoreError, match=r"something else \(tables runs\)"):
        Store.open(f"{url}?options=-csearch_path%3Dother")
