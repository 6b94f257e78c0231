"""The pages on PostgreSQL: what SQLite forgives, such as types and grouping, it does not."""

from collections.abc import Iterator

import pytest

from dashboard.pages import PAGES, PageInfo
from dashboard.session import ALLOW_TRIAGE
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import H200, REGRESSED, REGRESSION_AT, Plan, runs, sha
from tracker.store import Store
from tracker.store.people import TriageState, triage_log
from tracker.tests.cluster import Cluster, running

pytestmark = pytest.mark.postgres
PLAN = Plan(measurements=6, models=(H200,))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> str:
    """A store with a whole suite, and a role that may only read it."""
    cluster.execute("CREATE DATABASE shown")
    url = fill(cluster.url("shown"), runs(PLAN))
    cluster.execute(
        "CREATE ROLE visitor LOGIN PASSWORD 'visitor'",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor",
        database="shown",
    )
    return url


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same runs in SQLite."""
    return fill(f"sqlite:///{tmp_path_factory.mktemp('twin') / 'twin.db'}", runs(PLAN))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
@pytest.mark.usefixtures("address")
def test_every_page_shows_what_sqlite_shows(
    app: Open, cluster: Cluster, twin: str, page: PageInfo
) -> None:
    name = page.file.removeprefix("views/").removesuffix(".py")
    here = app(name, store=cluster.url("shown", "visitor", "visitor"), gpu=H200)
    assert not here.exception
    there = app(name, store=twin, gpu=H200)
    assert [table.value.shape for table in here.dataframe] == [
        table.value.shape for table in there.dataframe
    ]
    assert len(here.get("vega_lite_chart")) == len(there.get("vega_lite_chart"))
    assert "visitor:visitor" not in pages.html(here)


def test_triage_is_written(app: Open, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.execute("CREATE DATABASE triaged")
    address = fill(cluster.url("triaged"), runs(PLAN))
    monkeypatch.setattr("sys.argv", ["app.py", ALLOW_TRIAGE])
    page = app("changes", store=address, gpu=H200, kernel="relu")
    page.selectbox(key="triage-action").set_value("accept")
    page.text_input(key="triage-author").set_value("Ada")
    page.text_input(key="triage-note").set_value("exact at last")
    page.button[0].click().run()
    assert not page.exception
    with Store.open(address, read_only=True) as store:
        (entry,) = triage_log(store)
    assert (entry.state, entry.commit_sha) == (TriageState.ACCEPTED, sha(REGRESSION_AT))
    assert entry.case_fingerprint == REGRESSED.fingerprint


def test_a_server_that_is_away_is_told(app: Open, cluster: Cluster, address: str) -> None:
    cluster.stop()
    try:
        page = app(store=address)
        assert not page.exception
        assert "The store cannot be read" in pages.html(page)
        assert cluster.password not in pages.html(page)
    finally:
        cluster.start()
