"""Counters from ncu's CSV, and every way of not having them."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from perftests.harness.counters import (
    METRICS,
    CountersError,
    find_ncu,
    parse,
    parse_each,
    read_counters,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DURATION = "gpu__time_duration.sum"
NAMES = ["ID", "Kernel Name", *METRICS.values(), DURATION]


def line(*values: object) -> str:
    return ",".join(f'"{value}"' for value in values)


def table(*kernels: tuple[str, float, float]) -> str:
    """Return ncu's raw page for kernels of a name, a duration and megabytes read."""
    rows = [
        line(k, name, 91.5, f"{megabytes * 1e6:,.0f}", "2,000,000", 12.5, 16, 16, 88, 28.8, 24, ns)
        for k, (name, ns, megabytes) in enumerate(kernels)
    ]
    return "\n".join(["==PROF== Connected", line(*NAMES), line(*["", *["unit"] * 11]), *rows, ""])


def test_the_longest_kernel_tells_and_traffic_is_that_of_all() -> None:
    found = parse(table(("short", 10, 1), ("long one", 900, 4)))
    assert found["kernel_name"] == "long one"
    assert found["dram_throughput_percent"] == 91.5
    assert found["dram_read_bytes"] == 5e6
    assert found["dram_write_bytes"] == 4e6
    assert found["warp_efficiency_percent"] == pytest.approx(90)
    assert found["registers_per_thread"] == 24
    assert found["kernels"] == 2
    assert DURATION not in found


def test_each_kernel_has_its_own_counters_in_order_of_launch() -> None:
    found = parse_each(table(("first", 10, 1), ("second", 900, 4)))
    assert [(row["kernel_name"], row["dram_read_bytes"]) for row in found] == [
        ("first", 1e6),
        ("second", 4e6),
    ]


def test_a_missing_metric_is_none() -> None:
    found = parse("\n".join([line("ID", "Kernel Name"), line("", ""), line(0, "k")]))
    assert found["dram_read_bytes"] is None
    assert found["warp_efficiency_percent"] is None


def test_no_kernel_is_an_error() -> None:
    with pytest.raises(CountersError, match="no kernel between the marks"):
        parse("==WARNING== No kernels were profiled.\n")


@pytest.fixture
def ncu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Put a script named ncu on PATH whose body is Python; `log` names its log file."""

    def make(body: str) -> Path:
        script = tmp_path / "ncu"
        found = "import sys\nlog = sys.argv[sys.argv.index('--log-file') + 1]\n"
        script.write_text(f"#!{sys.executable}\n{found}{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return script

    return make


def test_the_clocks_are_left_alone_and_the_launch_alone_is_profiled(
    ncu: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "out.csv").write_text(table(("k", 5, 3)))
    ncu("print(*sys.argv, file=open('seen', 'w'))\nopen(log, 'w').write(open('out.csv').read())")
    found = read_counters(["-m", "pytest", "a::b"], tmp_path, flush=True)
    assert found["dram_read_bytes"] == 3e6
    seen = (tmp_path / "seen").read_text()
    assert "--clock-control none" in seen
    assert "--profile-from-start off" in seen
    assert "--cache-control all" in seen
    assert seen.strip().endswith("-m pytest a::b")


@pytest.mark.parametrize(
    ("body", "reason", "final"),
    [
        ("open(log, 'w').write('==ERROR== ERR_NVGPUCTRPERM - no permission')", "forbids", True),
        ("open(log, 'w').write('==ERROR== LibraryNotLoaded')", "ncu: LibraryNotLoaded", False),
        ("print('1 failed'); sys.exit(1)", "failed with 1: 1 failed", False),
    ],
)
def test_a_refusal_is_one_reason(
    body: str, reason: str, final: bool, ncu: Callable[[str], Path], tmp_path: Path
) -> None:
    ncu(body)
    with pytest.raises(CountersError, match=reason) as caught:
        read_counters([], tmp_path, flush=False)
    assert caught.value.final is final


def test_an_absent_ncu_is_final(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CountersError, match="Nsight Compute is absent") as caught:
        find_ncu(places=())
    assert caught.value.final
