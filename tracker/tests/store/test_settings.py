"""A server that is set up in another way: what is stored comes back to the last bit, or is refused."""

import math
from pathlib import Path

import pytest

from tracker import queries
from tracker.errors import StoreError
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.copying import copy_store
from tracker.tests.cluster import Cluster
from tracker.tests.factory import make_case, make_result, make_run

pytestmark = pytest.mark.postgres
TEXT = "é\N{CJK UNIFIED IDEOGRAPH-4E2D}\N{GRINNING FACE} \\ ' \" %s %(x)s"
RUN = make_run(
    results=(
        make_result(make_case(TEXT), [math.pi * 1e-5 * (1 + 1e-15 * k) for k in range(40)]),
        make_result(make_case("thirds"), [1 / 3e5, 2 / 3e5]),
    ),
    command=TEXT,
)


def made(cluster: Cluster, encoding: str, *settings: str) -> str:
    """The address of a new, empty database whose connections begin with these settings."""
    cluster.execute(
        "DROP DATABASE IF EXISTS odd WITH (FORCE)",
        f"CREATE DATABASE odd ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0",
        *(f"ALTER DATABASE odd SET {setting}" for setting in settings),
    )
    return cluster.url("odd")


@pytest.mark.parametrize(
    "setting",
    [
        "extra_float_digits = 0",
        "extra_float_digits = -15",
        "bytea_output = 'escape'",
        "standard_conforming_strings = off",
        "client_encoding = 'LATIN1'",
        "client_encoding = 'SQL_ASCII'",
        "TimeZone = 'Asia/Kathmandu'",
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
    ],
)
def test_no_setting_of_a_server_changes_what_comes_back(
    cluster: Cluster, tmp_path: Path, setting: str
) -> None:
    with Store.open(f"{tmp_path}/a.db") as source, Store.open(made(cluster, "UTF8", setting)) as s:
        source.record(RUN)
        copy_store(source, s)
        assert queries.load_run(s, RUN.run_id) == RUN
        assert queries.series(s, RUN.results[1].case.fingerprint, "NVIDIA H200").median_s[0] == (
            RUN.results[1].summary and RUN.results[1].summary.median_s
        )
        assert s.record(make_run("run-00000002", 2, results=RUN.results)).inserted
        assert list(check_store(s)) == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_a_database_that_cannot_hold_every_text_is_refused(cluster: Cluster, encoding: str) -> None:
    address = made(cluster, encoding)
    with pytest.raises(StoreError, match=f"its encoding is {encoding}; expected UTF8"):
        Store.open(address)


def test_a_variable_of_the_surroundings_changes_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c extra_float_digits=0")
    with Store.open(made(cluster, "UTF8")) as store:
        store.record(RUN)
        assert list(check_store(store)) == []
