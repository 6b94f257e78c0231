"""Filters offer what exists, narrowed in order, and bad links are told."""

from dashboard.filters import (
    ALL,
    GPU,
    KERNEL,
    WINDOWS,
    Address,
    narrowed,
    options,
    told_counts,
)

ROWS = [
    {"gpu": "H200", "kernel": "relu", "implementation": "torch", "dtype": "float32"},
    {"gpu": "H200", "kernel": "relu", "implementation": "triton", "dtype": "float32"},
    {"gpu": "H200", "kernel": "relu", "implementation": "triton", "dtype": "float16"},
    {"gpu": "A100", "kernel": "add", "implementation": "torch", "dtype": "float32"},
]


def test_options_are_what_exists_with_counts() -> None:
    assert options(row["kernel"] for row in ROWS) == {"add": 1, "relu": 3}
    assert options(row["dtype"] for row in ROWS) == {"float16": 1, "float32": 3}


def test_later_options_are_narrowed_by_earlier_choices() -> None:
    relu = narrowed(narrowed(ROWS, GPU, "H200"), KERNEL, "relu")
    assert options(row["implementation"] for row in relu) == {"torch": 1, "triton": 2}
    assert narrowed(ROWS, KERNEL, ALL) == ROWS


def test_counts_are_told_and_cut() -> None:
    told = told_counts({f"kernel{i}": i for i in range(20)}, "Cases", limit=3)
    assert told.startswith("Cases per option:")
    assert "2 kernel2" in told
    assert "and 17 more" in told


def test_a_bad_value_is_told_and_a_good_one_is_not() -> None:
    address = Address({"kernel": ["softmax"], "gpu": ["H200"]})
    address.check("kernel", "Kernel", ["relu", "add"])
    address.check("gpu", "GPU model", ["H200"])
    address.check("dtype", "Dtype", ["float32"])
    assert address.notices == ["Kernel: nothing here is called 'softmax'."]


def test_an_unknown_parameter_is_told() -> None:
    address = Address({"kernle": ["relu"], "embed": ["true"]})
    address.check_known(["kernel"])
    assert address.notices == ["This page has no filter called 'kernle'."]


def test_windows_are_commits_or_days() -> None:
    assert WINDOWS["20 commits"] == ("commits", 20)
    assert WINDOWS["90 days"] == ("days", 90)
    assert {unit for unit, _ in WINDOWS.values()} == {"commits", "days"}
