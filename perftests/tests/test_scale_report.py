"""The table of the store at scale: misses are named, growth and ratios worked out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perftests.scale.report import table

ROOT = Path(__file__).parents[2]
MADE = {"load": 2.0, "at": "2026-03-02 12:00"}


def benchmark(figure: str, median: float, goal: float | None = None, cpu: float = 0.0) -> Any:
    info = {"figure": figure, "engine": "sqlite", "goal_s": goal, "cpu_s": [cpu] * 3}
    return {
        "stats": {"median": median, "min": median / 2, "max": median * 2},
        "extra_info": info | MADE,
    }


def page(*benchmarks: Any, **facts: Any) -> list[str]:
    measured = {
        "benchmarks": list(benchmarks),
        "machine_info": {"cpu": {"brand_raw": "a CPU", "count": 2}},
    }
    return [line for line in table(measured, facts).splitlines() if line.startswith("| ")]


def row(rows: list[str], name: str) -> str:
    (found,) = [line for line in rows if line.startswith(f"| {name} ")]
    return found


def test_a_goal_is_met_missed_or_missed_for_waiting() -> None:
    rows = page(
        benchmark("met", 0.9, 1.0, 0.5),
        benchmark("waited", 1.1, 1.0, 0.5),
        benchmark("slow", 1.1, 1.0, 1.05),
    )
    assert row(rows, "met").endswith("| met |")
    assert row(rows, "waited").endswith("| **missed**; met in processor time |")
    assert row(rows, "slow").endswith("| **missed** |")


def test_growth_compares_large_with_small() -> None:
    rows = page(benchmark("check, small", 1.0, cpu=1.0), benchmark("check, large", 1.5, cpu=1.1))
    assert "1.50x" in row(rows, "growth of check, small to large")
    assert "1.10x" in row(rows, "growth of check, small to large")


@pytest.mark.parametrize(("theirs", "outcome"), [(3.0, "**missed**"), (5.0, "met")])
def test_compare_is_theirs_over_ours_with_a_goal_where_both_do_the_same(
    theirs: float, outcome: str
) -> None:
    ways = {"ours": [1.0, 1.0], "stats only": [4.0, 4.0], "with data": [20.0, 20.0]}
    both = {f"{how}{name}": s for how in ("", "in process, ") for name, s in ways.items()}
    both |= {"side by side, ours": [0.5], "side by side, stats only": [1.0]}
    both |= {"side by side, with data": [theirs]}
    info = {"figure": "compare", "seconds": both, "cpu": both} | MADE
    rows = page(benchmark("check, small", 1.0), {"extra_info": info, "stats": {}})
    compared = [line for line in rows if line.startswith("| compare two of 100 runs")]
    assert "| 4.0x (1.00 s against 4.00 s) |" in compared[0]
    assert "side by side" in compared[-1]
    assert f"| {theirs / 0.5:.1f}x (0.50 s against {theirs:.2f} s) |" in compared[-1]
    assert compared[-1].endswith(f"| {outcome} |")
    assert [line.endswith("|  |") for line in compared] == [True] * 5 + [False]


def test_size_has_its_goal() -> None:
    rows = page(benchmark("check, small", 1.0), **{"sqlite large": {"bytes_per_result": 601.0}})
    assert row(rows, "disk per result, 100 measurements, large").endswith("| **missed** |")


def test_the_suite_does_not_collect_the_scale_benchmarks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "perftests/scale"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no tests collected" in done.stdout
