"""The recorded runs that ship tell their story: what was lost, since when, whose, and its return."""

import pytest

from dashboard.tests import pages
from dashboard.tests.conftest import Open
from tracker.demo import load_demo, recorded_runs
from tracker.store import Store

PLANTED = "d7f5f49"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of the shipped runs."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with Store.open(f"sqlite:///{path}") as store:
        load_demo(store, recorded_runs())
    return f"sqlite:///{path}"


def test_the_planted_slow_down_comes_first_and_is_told_to_be_fixed(app: Open, demo: str) -> None:
    page = app(store=demo)
    table = pages.table(page)
    losses = table[[pills[0] == "▲ slower" for pills in table["verdict"]]]
    assert len(losses) == 3
    assert [list(pills) for pills in table["verdict"]][:3] == [["▲ slower", "fixed"]] * 3
    assert set(losses["since"]) == {PLANTED}
    assert all(case.startswith("relu/cuda_vector") for case in losses["case"])
    assert all(-5 < float(c[:-2].replace("\N{MINUS SIGN}", "-")) < -4 for c in losses["change"])
    assert losses["subject"].iloc[0].startswith("Plant a slow-down in relu")
    (command,) = [text for text in pages.codes(page) if text.startswith("git checkout")]
    assert command.startswith(f"git checkout {PLANTED}")


def test_its_chart_marks_the_loss_and_the_rate_is_back(app: Open, demo: str) -> None:
    told = pages.chart(app(store=demo))[1]
    assert f"at {PLANTED}" in told
    assert "from 4160 GB/s to 4165 GB/s" in told


def test_the_changes_page_has_the_loss_as_fixed_and_no_gain(app: Open, demo: str) -> None:
    """One slow run between equal ones: to come back to the level before is no gain."""
    page = app("changes", store=demo)
    table = pages.table(page)
    assert [pills[0] for pills in table["verdict"]] == ["▲ slower"]
    assert table["states"].tolist() == ["fixed"]
    assert table["range"].tolist() == [f"c9f47eb to {PLANTED}"]
    assert table["cases"].tolist() == [3]
    assert any(text.startswith("bandwatch bisect ") for text in pages.codes(page))
