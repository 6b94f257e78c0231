"""Kernels, roofline, correctness and runs."""

import pytest

from dashboard import comparable
from dashboard.pages import PAGES, PageInfo
from dashboard.tests import pages
from dashboard.tests.conftest import Open
from dashboard.tests.runs import A100, COMMITS, CUDA_AT, H200, INCORRECT, sha
from tracker import queries
from tracker.store import Store


def test_the_ladder_has_every_implementation_the_fastest_first(app: Open) -> None:
    page = app("kernels", gpu=H200, kernel="relu", dtype="float32")
    assert not page.exception
    table = pages.table(page)
    assert set(table["implementation"]) == {"cuda_vector", "triton", "torch", "cuda_scalar"}
    assert table["us"].is_monotonic_increasing
    torch = table.loc[table["implementation"] == "torch", "speedup"]
    assert torch.tolist() == [1.0]


def test_the_ladder_goes_over_sizes_and_gpu_models(app: Open) -> None:
    page = app("kernels", gpu=H200, kernel="relu", dtype="float32")
    told = [pages.chart(page, place)[1] for place in range(3)]
    assert told[0].startswith("Bandwidth of 4 implementations")
    assert told[1].startswith("Bandwidth over bytes moved")
    assert f"on {A100}, {H200}" in told[2]


def test_the_ladder_by_time_and_by_fraction_of_copy(app: Open) -> None:
    assert pages.chart(app("kernels", metric="time"))[1].startswith("Time of")
    assert pages.chart(app("kernels", metric="copy"))[1].startswith("Fraction of copy of")


def test_the_roofline_has_both_roofs_and_the_ridge(app: Open) -> None:
    page = app("roofline", gpu=H200, dtype="float32")
    told = pages.chart(page)[1]
    assert "theoretical peak 4800 GB/s" in told
    assert "fastest copy in this run" in told
    assert "ridge point 14.0 FLOP/byte" in told
    table = pages.table(page)
    add = table[table["label"].str.startswith("add/")]
    assert add["intensity"].tolist() == pytest.approx([1 / 12] * len(add))


def test_the_roofline_says_what_has_no_place(app: Open) -> None:
    assert "1 case without arithmetic or time left out" in pages.html(
        app("roofline", gpu=H200, dtype="float16")
    )


def test_correctness_counts_and_shows_the_refused_case_first(app: Open) -> None:
    page = app("correctness", gpu=H200)
    shown = pages.html(page)
    assert "! 1</b> refused" in shown
    assert "= 36</b> within bounds" in shown
    assert pages.table(page)["label"].iloc[0] == INCORRECT.label
    assert pages.table(page)["worst_ratio"].iloc[0] == 512.0
    assert "1 refused" in pages.chart(page)[1]


def test_only_refused_cases_on_request(app: Open) -> None:
    table = pages.table(app("correctness", gpu=H200, show="refused"))
    assert table["label"].tolist() == [INCORRECT.label]
    assert "No case of this run is like that" in " ".join(
        c.value for c in app("correctness", gpu=A100, show="refused").caption
    )


def test_a_linked_run_shows_its_environment_and_why_it_is_not_comparable(app: Open) -> None:
    page = app("runs", gpu=H200, run=sha(CUDA_AT - 1), tab="Environment")
    assert not page.exception
    shown = pages.html(page)
    assert f">{sha(CUDA_AT - 1)[:7]}<" in shown
    assert "Not comparable with the newest clean run" in shown
    assert "another environment: cuda: 13.0 -&gt; 12.9" in shown
    assert "580.95.05" in shown


def test_the_newest_run_is_open_without_a_link(app: Open) -> None:
    page = app("runs", gpu=H200, branch="main")
    assert f">{sha(COMMITS - 1)[:7]}<" in pages.html(page)
    assert len(pages.table(page)) == COMMITS


def test_measurements_and_device_states_of_one_case(app: Open) -> None:
    page = app("runs", gpu=H200, tab="Measurements")
    assert "12 measurements" in pages.chart(page)[1]
    states = pages.html(app("runs", gpu=H200, tab="Device states"))
    assert "1980 MHz" in states
    assert "612.0 W" in states


def test_an_unknown_run_is_told(app: Open) -> None:
    assert "No run is called" in pages.html(app("runs", run="doesnotexist"))


def test_obstacles_to_a_comparison(full_store: str) -> None:
    with Store.open(full_store, read_only=True) as store:
        a100 = queries.find_run(store, "latest", gpu_model=A100)
        first = queries.find_run(store, sha(0), gpu_model=H200)
        last = queries.find_run(store, sha(COMMITS - 1), gpu_model=H200)
        before = queries.find_run(store, sha(COMMITS - 2), gpu_model=H200)
    assert comparable.obstacles(a100, last) == [f"another GPU model: {A100}, not {H200}"]
    assert comparable.obstacles(first, last) == ["another environment: cuda: 13.0 -> 12.9"]
    assert comparable.obstacles(before, last) == []
    assert comparable.obstacles(last, before) == [
        "1 case is incorrect: left out of every comparison"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_page_explains_itself_and_every_chart_has_a_sentence_and_a_table(
    app: Open, page: PageInfo
) -> None:
    shown = app(page.file.split("/")[1].removesuffix(".py"), gpu=H200)
    assert not shown.exception
    assert any(page.help[:40] in block.value for block in shown.markdown)
    charts = shown.get("vega_lite_chart")
    assert all(len(chart.proto.alt) > 20 for chart in charts)
    assert not charts or len(shown.dataframe)
    assert all(frame.proto.alt for frame in shown.dataframe)
    assert pages.permanent(shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_filter_of_models_and_kernels_tells_what_its_options_stand_for(
    app: Open, full_store: str, page: PageInfo
) -> None:
    with Store.open(full_store, read_only=True) as store:
        runs = {model.name: model.runs for model in queries.gpu_models(store)}
    shown = app(page.file.split("/")[1].removesuffix(".py"), gpu=H200)
    boxes = {box.key: box for box in shown.selectbox}
    if page.title != "Series":  # which counts series
        assert f"Runs per option:\n\n    {runs[H200]:,} {H200}" in boxes["gpu"].help
    for key in {"kernel", "dtype"} & boxes.keys():
        told = boxes[key].help.partition(" per option:\n\n")
        assert told[0] in {"Series", "Cases", "Changes"}
        names = [line.split()[1] for line in told[2].splitlines()]
        assert names == [name for name in boxes[key].options if name != "all"]
