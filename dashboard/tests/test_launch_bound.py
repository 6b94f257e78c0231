"""What the pages say of results that are mostly launch: the word, and no share of a peak.

The small cases of relu are planted so on the H200: about 4.7 us where an empty kernel takes 4.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard import data, history, judging
from dashboard.columns import ROOFLINE_NAMES, series_export, verdict_export
from dashboard.data import Snapshot
from dashboard.glossary import WORDS
from dashboard.history import Window
from dashboard.metrics import BANDWIDTH
from dashboard.pages import PAGES
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import A100, H200, Plan, runs
from dashboard.views.roofline import placed
from tracker import queries
from tracker.model import Result, Run, Warn
from tracker.roofline import Roof
from tracker.store import Store
from tracker.tests.factory import summarise

SMALL, MIDDLE, LARGE = (f"[{size}] cold" for size in (1 << 18, 1 << 22, 1 << 26))
CASE = f"relu/torch float32 {SMALL}"
RELU = {"gpu": H200, "kernel": "relu", "dtype": "float32"}
MESSAGE = "an empty kernel shows 4.00 us by the same timer: most of this time is the launch"
MEANS = "most of the time is the launch, so the bandwidth says nothing of the memory"


def planted(run: Run) -> Run:
    small = run.environment.gpu_model == H200
    return replace(run, results=tuple(_planted(r) if small else r for r in run.results))


def _planted(result: Result) -> Result:
    if result.case.kernel != "relu" or result.case.shape != (1 << 18,):
        return result
    near = Warn("near_floor", MESSAGE)
    return replace(result, peaks=replace(result.peaks, floor_s=4e-6), warnings=(near,))


def plan() -> Iterator[Run]:
    yield from map(planted, runs(Plan(commits=3, measurements=4)))


@pytest.fixture(scope="module")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fill(tmp_path_factory.mktemp("launch") / "bound.db", plan())


def by_label(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    records: Any = frame.to_dict("records")
    return {row["label"]: row for row in records}


def test_side_by_side_no_share_is_shown_and_the_warning_has_the_word(
    app: Open, small_store: str
) -> None:
    page = app("kernels", store=small_store, shape=SMALL, **RELU)
    assert not page.exception
    table = pages.table(page)
    assert table["empty"].tolist() == pytest.approx([4.0] * 4)
    assert table[["copy", "of_peak"]].isna().all(axis=None)
    assert set(table["warnings"]) == {f"launch-bound: {MESSAGE}"}
    bars = pages.chart(page)[2][0]
    assert all(text.endswith(" GB/s, launch-bound") for text in bars["text"])
    # The other sizes keep what they had.
    other = pages.table(app("kernels", store=small_store, shape=LARGE, **RELU))
    assert other["of_peak"].between(70, 90).all()
    assert "warnings" not in other


def test_over_sizes_the_small_ones_are_marked_and_across_models_left_out(
    app: Open, small_store: str
) -> None:
    page = app("kernels", store=small_store, shape=SMALL, **RELU)
    sweep = next(f for f in pages.chart(page, 1)[2] if "size_text" in f)
    bound = sweep[sweep["launch_bound"]]
    assert set(bound["size_text"]) == {"2 MiB"}
    assert len(bound) == 4
    assert f"hollow: launch-bound, {MEANS}" in pages.html(page)
    # Four implementations on each model: the A100's are not bound by launch.
    assert f"4 of 8 results left out: launch-bound, {MEANS}" in pages.html(page)
    across = pages.chart(page, 2)[2][0]
    assert set(across["gpu_model"]) == {A100}
    assert "left out" not in pages.html(app("kernels", store=small_store, shape=LARGE, **RELU))


def test_the_table_over_sizes_names_them_and_keeps_their_rates_alone(
    app: Open, small_store: str
) -> None:
    names = ["cuda_scalar", "cuda_vector", "torch", "triton"]
    for metric, kept in (("bandwidth", True), ("time", True), ("copy", False)):
        page = app("kernels", store=small_store, shape=SMALL, metric=metric, **RELU)
        table = pages.table(page, 1)
        assert table["bytes_moved"].tolist() == [2 << 20, 32 << 20, 512 << 20]
        assert table["launch-bound"].tolist() == ["all", "", ""]
        assert table[names].notna().to_numpy().tolist() == [[kept] * 4, [True] * 4, [True] * 4]


def test_the_roofline_draws_none_that_is_bound_by_launch(app: Open, small_store: str) -> None:
    page = app("roofline", store=small_store, **RELU)
    assert not page.exception
    table = pages.table(page)
    rows = by_label(table)
    assert rows[CASE]["bound_by"] == "launch"
    assert isnan(rows[CASE]["of_roof"])
    assert rows[CASE]["empty"] == pytest.approx(4.0)
    assert rows[f"relu/torch float32 {LARGE}"]["bound_by"] == "memory"
    # Those that say nothing come last, behind the farthest below the roof.
    assert table["of_roof"].isna().tolist() == [False] * 9 + [True] * 4
    drawn = next(frame for frame in pages.chart(page)[2] if "bandwidth_text" in frame)
    assert set(table["label"]) - set(drawn["label"]) == set(table["label"].iloc[-4:])
    told = f"4 cases bound by launch: in the table, not in the chart \u00b7 {MEANS}"
    assert told in pages.html(page)


def test_a_roofline_of_nothing_but_launches_still_has_its_roofs(app: Open, tmp_path: Path) -> None:
    runs_ = (
        replace(run, results=tuple(r for r in run.results if r.case.shape == (1 << 18,)))
        for run in plan()
    )
    page = app("roofline", store=fill(tmp_path / "only.db", runs_), gpu=H200, dtype="float32")
    assert not page.exception
    assert "Roofline of 0 cases: theoretical peak 4800 GB/s" in pages.chart(page)[1]
    assert "4 cases bound by launch" in pages.html(page)
    assert set(pages.table(page)["bound_by"]) == {"launch"}


def test_a_run_has_no_share_of_what_is_launch_bound(app: Open, small_store: str) -> None:
    rows = by_label(pages.table(app("runs", store=small_store, gpu=H200), 1))
    assert isnan(rows[CASE]["copy"])
    assert rows[CASE]["empty"] == pytest.approx(4.0)
    assert rows[CASE]["gbps"] > 0
    assert rows[CASE]["warnings"] == f"launch-bound: {MESSAGE}"
    assert rows[f"relu/torch float32 {LARGE}"]["copy"] > 90


def test_a_series_has_the_empty_kernel_of_each_run_and_says_what_it_is(
    app: Open, small_store: str
) -> None:
    page = app("series", store=small_store, gpu=H200, case=CASE)
    assert not page.exception
    table = pages.table(page)
    assert table["empty"].tolist() == pytest.approx([4.0] * 3)
    assert table["copy"].isna().all()
    assert set(table["note"]) == {"launch-bound"}
    points = next(frame for frame in pages.chart(page)[2] if "baseline" in frame)
    assert set(points["note"]) == {"launch-bound"}
    assert f"launch-bound: {CASE}; {MEANS}" in pages.html(page)
    assert "GB/s, launch-bound<" in pages.html(page)
    assert "Fraction of copy<" not in pages.html(page)


def test_a_series_of_a_small_one_that_is_not_launch_bound_keeps_its_share(
    app: Open, small_store: str
) -> None:
    # The same case on the A100: 2.1 of some 5.4 us.
    page = app("series", store=small_store, gpu=A100, case=CASE)
    table = pages.table(page)
    assert table["empty"].tolist() == pytest.approx([2.1])
    assert table["copy"].notna().all()
    assert "launch-bound" not in pages.html(page)
    large = app("series", store=small_store, gpu=H200, case=f"relu/torch float32 {LARGE}")
    assert "empty" not in pages.table(large)


def test_a_comparison_names_it_beside_the_rate_of_head(app: Open, small_store: str) -> None:
    page = app("compare", store=small_store, gpu=H200, kernel="relu", show="all")
    table = pages.table(page)
    now = dict(zip(table["case"], table["now"], strict=True))
    assert now[CASE].endswith(" GB/s, launch-bound")
    assert now[f"relu/torch float32 {LARGE}"].endswith(" GB/s")


def test_a_finding_of_what_is_launch_bound_says_so_beside_its_rates(
    app: Open, tmp_path: Path
) -> None:
    def slower(run: Run, factor: float) -> Run:
        done = (
            stretched(r, factor) if r.case.implementation == "torch" else r for r in run.results
        )
        return replace(run, results=tuple(done))

    # Of torch all is half as fast in the last of seven runs: on one device that is called at once.
    several = [*runs(Plan(commits=7, measurements=24, models=(H200,)))]
    several = [*several[:-1], slower(several[-1], 2.0)]
    page = app("overview", store=fill(tmp_path / "slow.db", map(planted, several)), gpu=H200)
    assert not page.exception
    table = pages.table(page)
    shown = dict(zip(table["case"], table["bandwidth"], strict=True))
    assert shown[CASE].endswith(", launch-bound")
    assert "launch-bound" not in shown[f"relu/torch float32 {LARGE}"]


def stretched(result: Result, factor: float) -> Result:
    if result.summary is None:
        return result
    return replace(
        result,
        summary=summarise([time * factor for time in result.measurements_s]),
        measurements_s=tuple(time * factor for time in result.measurements_s),
        median_cycles=(result.median_cycles or 0) * factor,
        code_fingerprint="changed",
    )


def test_of_several_at_one_size_those_that_are_launch_bound_are_named(
    app: Open, tmp_path: Path
) -> None:
    def some(run: Run) -> Run:
        spared = ("torch", "triton")
        kept = (
            replace(r, warnings=()) if r.case.implementation in spared else r for r in run.results
        )
        return replace(run, results=tuple(kept))

    page = app("kernels", store=fill(tmp_path / "some.db", map(some, plan())), **RELU)
    assert pages.table(page, 1)["launch-bound"].tolist() == ["cuda_scalar, cuda_vector", "", ""]


@pytest.fixture
def snapshot(small_store: str) -> Iterator[Snapshot]:
    with Store.open(small_store, read_only=True) as store:
        yield Snapshot(store, store.revision())


def test_files_have_the_floor_and_the_word(snapshot: Snapshot) -> None:
    key = next(row["case_key"] for row in data.catalogue(snapshot) if row["case"] == CASE)
    line = queries.series(snapshot.store, key, H200)
    loaded = history.load(snapshot, [line], Window("commits", 0), BANDWIDTH)
    file = series_export(history.with_floors(snapshot, loaded.every))
    assert file["floor_s"].tolist() == [4e-6] * 3
    assert file["launch_bound"].tolist() == [True] * 3
    assert set(file["note"]) == {"launch-bound"}
    run = queries.find_run(snapshot.store, "latest")
    rows = placed(data.latest(snapshot, run.run_id), Roof(4.8e12, 67e12))
    found = by_label(rows[list(ROOFLINE_NAMES)].rename(columns=ROOFLINE_NAMES))[CASE]
    assert [found[name] for name in ("floor_s", "launch_bound", "bound_by")] == [
        4e-6,
        True,
        "launch",
    ]


def test_verdicts_as_a_file_have_the_floor_and_the_word(snapshot: Snapshot) -> None:
    newest = queries.find_run(snapshot.store, "latest")
    file = verdict_export(judging.of_run(snapshot, newest.run_id).rows)
    rows = by_label(file.rename(columns={"case": "label"}))
    assert rows[CASE]["floor_s"] == 4e-6
    assert rows[CASE]["launch_bound"] is True
    assert rows[f"relu/torch float32 {MIDDLE}"]["launch_bound"] is False


def test_every_page_that_may_say_it_explains_it() -> None:
    silent = [page.title for page in PAGES if "launch-bound" not in page.words]
    assert silent == ["Correctness"]
    assert MEANS in WORDS["launch-bound"]
