"""The series page: what is drawn, chosen, linked and exported."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dashboard import history
from dashboard.data import Snapshot
from dashboard.history import Window, grouped, merged
from dashboard.marks import one_a_place
from dashboard.metrics import BANDWIDTH, COPY, TIME
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import (
    COMMITS,
    CUDA_AT,
    H200,
    INCORRECT,
    REGRESSED,
    REGRESSION_AT,
    VANISHED,
    VANISHED_AT,
    sha,
)
from tracker import queries
from tracker.model import Run
from tracker.store import Store
from tracker.tests.factory import make_case, make_result, make_run


def test_a_deep_link_opens_one_case(app: Open) -> None:
    page = app("series", kernel="relu", case=REGRESSED.label)
    assert not page.exception
    spec, told, frames = pages.chart(page)
    assert REGRESSED.label in told
    assert "from 39" in told
    points = next(frame for frame in frames if "baseline" in frame)
    assert len(points) == COMMITS
    assert points["value"].iloc[0] == pytest.approx(3950, rel=0.01)
    assert points["value"].iloc[-1] == pytest.approx(3755, rel=0.01)
    assert spec["layer"]


def test_a_linked_case_brings_its_kernel(app: Open) -> None:
    page = app("series", case=REGRESSED.label)
    assert page.selectbox(key="kernel").value == "relu"
    assert REGRESSED.label in pages.chart(page)[1]


def test_without_a_choice_the_six_that_changed_most_are_shown(app: Open) -> None:
    page = app("series", kernel="relu", dtype="float32")
    assert any("6 that changed most" in caption.value for caption in page.caption)
    told = pages.chart(page)[1]
    assert REGRESSED.label in told
    assert told.count(" from ") == 6


def test_later_filters_offer_only_what_the_earlier_ones_leave(app: Open) -> None:
    page = app("series", kernel="add")
    assert page.selectbox(key="implementation").options == [
        "all",
        "cuda_scalar",
        "cuda_vector",
        "torch",
    ]
    assert page.selectbox(key="dtype").options == ["all", "float32"]


def test_the_metric_and_the_axis_follow_the_address(app: Open) -> None:
    page = app(
        "series", kernel="relu", case=REGRESSED.label, metric="time", axis="date", log="true"
    )
    spec = pages.chart(page)[0]
    text = str(spec)
    assert "Time (us)" in text
    assert "'field': 'date'" in text
    assert "'type': 'log'" in text


def test_environment_changes_are_marked_with_what_changed(app: Open) -> None:
    _, _, frames = pages.chart(app("series", kernel="relu", case=REGRESSED.label))
    (bands,) = [
        frame for frame in frames if set(frame.columns) == {"edge", "text"} or "text" in frame
    ]
    assert bands["text"].tolist() == ["cuda: 12.9 -> 13.0"]
    assert bands["edge"].tolist() == [CUDA_AT - 0.5]


def test_a_case_that_is_no_longer_measured_says_since_when(app: Open) -> None:
    shown = pages.html(app("series", kernel="add", case=VANISHED.label))
    assert "No longer measured" in shown
    assert sha(VANISHED_AT - 1)[:7] in shown


def test_until_ends_the_series_at_a_commit_and_says_so(app: Open) -> None:
    page = app("series", kernel="relu", case=REGRESSED.label, until=sha(REGRESSION_AT - 1))
    assert f"over {REGRESSION_AT} runs" in pages.chart(page)[1]
    assert any("show the newest" in label for label in pages.links(page))


def test_an_unknown_commit_in_the_link_is_told(app: Open) -> None:
    page = app("series", kernel="relu", case=REGRESSED.label, until="feedfacefeedface")
    assert not page.exception
    assert "feedface" in pages.html(page)


def test_the_permanent_link_ends_at_a_resolved_commit(app: Open) -> None:
    link = pages.permanent(app("series", kernel="relu", case=REGRESSED.label))
    assert f"until={sha(COMMITS - 1)}" in link
    assert "case=relu%2Fcuda_vector" in link


def test_a_refused_result_is_in_the_table_with_its_status(app: Open) -> None:
    table = pages.table(app("series", kernel="relu", case=INCORRECT.label))
    assert table["status"].iloc[0] == "incorrect"
    assert np.isnan(table["gbps"].iloc[0])


def test_windows_keep_commits_or_days(full_store: str) -> None:
    with Store.open(full_store, read_only=True) as store:
        series = queries.series(store, REGRESSED.fingerprint, H200, branch="main")
    assert len(history.cut(series, Window("commits", 20))) == 20
    assert len(history.cut(series, Window("commits", 0))) == COMMITS
    days = history.cut(series, Window("days", 7))
    assert series.started[days].max() - series.started[days].min() <= 7 * 86400
    assert len(history.cut(series, Window("commits", 0, "no such commit"))) == 0


def test_rates_turn_the_quartiles_of_time_around(full_store: str) -> None:
    with Store.open(full_store, read_only=True) as store:
        series = queries.series(store, REGRESSED.fingerprint, H200, branch="main")
    for metric in (TIME, BANDWIDTH, COPY):
        value, low, high = history.values(series, metric)
        assert (low <= value).all()
        assert (value <= high).all()


def test_runs_of_several_series_keep_each_order() -> None:
    places = merged([["a", "c", "d"], ["b", "c", "e"]], {"a": 1, "b": 0, "c": 2, "d": 4, "e": 3})
    assert sorted(places, key=places.__getitem__) == ["b", "a", "c", "e", "d"]


def test_many_runs_are_grouped_and_told() -> None:
    import pandas as pd

    count = 10_000
    frame = pd.DataFrame(
        {
            "position": range(count),
            "edge": np.arange(count) - 0.5,
            "line": "x",
            "value": np.r_[np.full(count // 2, 4.0), np.full(count // 2, 3.0)],
            "low": 1.0,
            "high": 5.0,
            "baseline": np.nan,
            "median_s": 1.0,
            "bandwidth_bytes_per_s": 1.0,
            "copy_fraction": 1.0,
            "sha": [f"{i:07x}" for i in range(count)],
        }
    )
    found, size = grouped(frame)
    assert (len(found), size) == (400, 25)
    assert set(found["value"]) == {3.0, 4.0}
    assert found["sha"].iloc[-1] == f"{count - 1:07x}"


def test_a_drift_is_told_and_no_step_is_drawn(app: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def drifting() -> Iterator[Run]:
        for number in range(1, 51):
            slower = 1.3e-4 * (1 + 0.001 * number)
            sample = [float(t) for t in slower * np.exp(rng.normal(0, 0.001, 12))]
            results = (make_result(make_case("relu"), sample, warnings=()),)
            yield make_run(f"run-of-{number:03d}", number, results=results, notes=())

    page = app("series", store=fill(tmp_path / "drift.db", drifting()))
    assert not page.exception
    assert "A steady drift, no step" in pages.html(page)
    _, told, _ = pages.chart(page)
    assert "no change point" in told


def test_changes_of_several_cases_at_one_commit_have_one_label() -> None:
    rows = [
        {
            "edge": 3.5,
            "kind": "regression",
            "effect": e,
            "date": 0,
            "sha": "d7f5f49",
            "line": str(e),
        }
        for e in (-0.045, -0.046)
    ]
    rows.append({**rows[0], "kind": "improvement", "effect": 0.02})
    found = one_a_place(rows)
    assert found["label"].tolist() == ["▲ \N{MINUS SIGN}4.6 % (2 cases)", "▼ +2.0 %"]
    assert found["line"].tolist()[0] == "-0.046"


def test_a_click_chooses_its_own_case_and_none_the_first_of_the_newest_run(full_store: str) -> None:
    with Store.open(full_store, read_only=True) as store:
        several = [
            queries.series(store, case.fingerprint, H200, branch="main")
            for case in (REGRESSED, INCORRECT)
        ]
        loaded = history.load(
            Snapshot(store, store.revision()), several, Window("commits", 5), BANDWIDTH
        )
    names = list(dict.fromkeys(loaded.points["line"]))
    runs = loaded.points["run_id"].tolist()
    assert loaded.chosen(None)[1]["line"] == names[0]
    assert loaded.chosen([{"run_id": runs[1], "line": names[1]}])[1]["line"] == names[1]
