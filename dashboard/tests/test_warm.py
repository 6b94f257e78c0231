"""The caches are warm before a visitor asks, again after each change, and never needed."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from dashboard import changes, data, judging, warm
from dashboard.data import Snapshot
from dashboard.findings import WINDOW
from dashboard.session import STORE_VARIABLE, open_store
from dashboard.tests.conftest import fill
from dashboard.tests.runs import H200, Plan, runs
from dashboard.warm import Warmer
from tracker import queries
from tracker.store import Store
from tracker.tests.factory import make_run


@pytest.fixture(autouse=True)
def _cold() -> Iterator[None]:
    yield
    open_store.clear()
    st.cache_data.clear()


@pytest.fixture
def small(tmp_path: Path) -> str:
    return fill(tmp_path / "small.db", runs(Plan(measurements=4, commits=6)))


def test_pages_find_everything_computed(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Warmer(small).look()

    def computed(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(queries, "find_run", computed)
    monkeypatch.setattr(queries, "result_table", computed)
    store = open_store(small, read_only=True)
    snapshot = Snapshot(store, store.revision())
    run = data.newest(snapshot, H200, "main")
    assert run is not None
    assert len(judging.of_run(snapshot, run.run_id).rows)
    changes.found(snapshot, H200, "main", WINDOW.unit, WINDOW.number)


def test_only_a_changed_store_is_computed_again(small: str) -> None:
    warmer = Warmer(small)
    assert warmer.look()
    assert not warmer.look()
    with Store.open(small) as store:
        store.record(make_run("run-of-another"))
    assert warmer.look()


@pytest.mark.parametrize("address", ["sqlite:////nowhere/at/all.db", "nothing://x"])
def test_a_store_in_trouble_does_not_keep_the_server_from_starting(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, address)
    begun = time.monotonic()
    warmer = warm.start(20.0)
    assert warmer.ready.is_set()
    assert time.monotonic() - begun < 10
    warmer.stop()
    warmer.join(5.0)
    assert not warmer.is_alive()


def test_a_slow_store_does_not_either(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE_VARIABLE, small)
    monkeypatch.setattr(warm, "warm", lambda _: time.sleep(1.0))
    warmer = warm.start(0.05)
    assert not warmer.ready.is_set()
    warmer.stop()
    warmer.join(5.0)
