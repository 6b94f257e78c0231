"""What stands beside a time on the pages: an empty kernel's, and the share of a sum of two arrays."""

from math import isnan

import pandas as pd
import pytest

from dashboard.tests import pages
from dashboard.tests.conftest import Open
from dashboard.tests.runs import A100, H200, REGRESSED
from dashboard.views.roofline import placed
from tracker.roofline import Roof

# What runs.py plants: a floor of 2.1 us, and a sum of two arrays at 1.02 times 4.1 TB/s.
SMALL, LARGE = "[262144] cold", "[67108864] cold"
SUM = 1.02 * 4.1e12
ADD = {"gpu": H200, "kernel": "add", "dtype": "float32"}
RELU = {"gpu": H200, "kernel": "relu", "dtype": "float32"}


def captions(page: object) -> str:
    return " ".join(caption.value for caption in page.caption)  # type: ignore[attr-defined]


def test_an_empty_kernel_stands_beside_small_ones_and_not_beside_large_ones(app: Open) -> None:
    small = pages.table(app("kernels", shape=SMALL, **RELU))
    # 2 MiB take some 4.7 us.
    assert small["us"].max() < 6
    assert small["empty"].tolist() == pytest.approx([2.1] * 4)
    large = pages.table(app("kernels", shape=LARGE, **RELU))
    assert large["us"].min() > 100
    assert "empty" not in large


def test_a_ladder_by_time_has_a_rule_at_the_empty_kernel(app: Open) -> None:
    page = app("kernels", shape=SMALL, metric="time", **RELU)
    assert "Dashed: an empty kernel in the same run, 2.100 us." in captions(page)
    rules = [frame for frame in pages.chart(page)[2] if "what" in frame]
    assert rules[0]["scaled"].tolist() == pytest.approx([2.1])
    assert "Dashed" not in captions(app("kernels", shape=LARGE, metric="time", **RELU))


def test_a_kernel_of_two_inputs_is_measured_against_a_sum_too(app: Open) -> None:
    page = app("kernels", shape=LARGE, **ADD)
    table = pages.table(page)
    assert table["sum"].tolist() == pytest.approx((table["gbps"] * 1e9 / SUM * 100).tolist())
    assert "Dashed: a sum of two arrays of the same size in the same run, 4182 GB/s" in captions(
        page
    )
    relu = app("kernels", shape=LARGE, **RELU)
    assert "sum" not in pages.table(relu)
    assert "Dashed: a copy of the same size in the same run, 3973 GB/s" in captions(relu)


def test_a_run_has_both_where_they_tell_something(app: Open) -> None:
    table = pages.table(app("runs", gpu=A100), 1).set_index("label")
    rows = table[["gbps", "empty", "sum"]].astype(float).to_dict("index")
    small, add = rows[f"relu/torch float32 {SMALL}"], rows[f"add/torch float32 {LARGE}"]
    assert small["empty"] == pytest.approx(2.1)
    assert isnan(rows[REGRESSED.label]["empty"])
    assert isnan(rows[REGRESSED.label]["sum"])
    assert add["sum"] == pytest.approx(add["gbps"] * 1e9 / 1.7748e12 * 100)


def test_the_details_of_a_result_tell_both(app: Open) -> None:
    small = pages.html(app("series", gpu=H200, case=f"relu/torch float32 {SMALL}"))
    assert ">2.10 us by the same timer<" in small
    large = pages.html(app("series", gpu=H200, case=REGRESSED.label))
    assert "by the same timer" not in large
    assert "% (a sum of two arrays)<" in large


@pytest.mark.parametrize("name", ["kernels", "series", "compare"])
def test_the_pages_say_what_the_words_mean(app: Open, name: str) -> None:
    told = " ".join(block.value for block in app(name, gpu=H200).markdown)
    assert "**empty kernel**: what a kernel that does nothing takes" in told
    assert "**fraction of sum**: bandwidth over that of a sum of two arrays" in told


def test_a_case_beyond_the_ridge_is_measured_by_its_arithmetic() -> None:
    # 4 TB/s and 40 TFLOP/s meet at 10 FLOP a byte; 1 GB in 1 ms is 1 TB/s.
    rows = pd.DataFrame(
        {
            "median_s": [1e-3, 1e-3, float("nan")],
            "bytes_moved": [1e9, 1e9, 1e9],
            "flop": [1e9, 20e9, 1e9],
            "bandwidth": [1e12, 1e12, float("nan")],
            "launch_bound": [False, False, False],
        }
    )
    found = placed(rows, Roof(4e12, 40e12))
    assert found["intensity"].tolist() == pytest.approx([1, 20])
    assert found["attained"].tolist() == pytest.approx([1 / 4, 20 / 40])
    assert found["attained_text"].tolist() == ["25.0 %", "50.0 %"]
    assert found["bound_by"].tolist() == ["memory", "arithmetic"]
