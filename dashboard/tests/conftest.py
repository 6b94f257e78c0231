"""Stores filled once a session, and the app run on one of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from altair.utils import schemapi
from streamlit.testing.v1 import AppTest

from dashboard.session import STORE_VARIABLE, open_store
from dashboard.tests.runs import Plan, runs
from tracker.model import Run
from tracker.store import Store

APP = Path(__file__).parents[1] / "app.py"
# Two cores shared with other tests; a page takes well below a second.
TIMEOUT_S = 30.0

Open = Callable[..., AppTest]


def fill(where: str | Path, found: Iterator[Run]) -> str:
    """Record runs into a store, given by its address or its file, and return its address."""
    address = where if isinstance(where, str) else f"sqlite:///{where}"
    with Store.open(address) as store:
        for run in found:
            store.record(run)
    return address


@pytest.fixture(scope="session")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of two GPU models and thirty commits with everything planted."""
    return fill(tmp_path_factory.mktemp("store") / "full.db", runs(Plan(measurements=12)))


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, full_store: str) -> Iterator[Open]:
    """Return a function that runs a page on a store with the given parameters in the address."""

    others = False

    def run(
        page: str = "overview", *, store: str | None = None, **parameters: str | list[str]
    ) -> AppTest:
        nonlocal others
        others |= store is not None
        monkeypatch.setenv(STORE_VARIABLE, store or full_store)
        test = AppTest.from_file(str(APP), default_timeout=TIMEOUT_S)
        if page != "overview":
            test.switch_page(f"views/{page}.py")
        for key, value in parameters.items():
            test.query_params[key] = value
        return test.run()

    # Charts are held against their schema in test_charts; here as in the server they are not.
    with schemapi.debug_mode(False):
        yield run
    # What was read of the full store holds for the next test too: it never changes.
    if others:
        open_store.clear()
        st.cache_data.clear()
