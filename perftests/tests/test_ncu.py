"""`--bandwatch-ncu`, from the flag to the record: counters stand beside a time and never in it."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.allocations import cpu_allocation
from perftests.harness.counters import CountersError, find_ncu
from perftests.tests.test_counters import table

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]
CASES = """
import pytest
from perftests.tests.workloads import relu_workload

@pytest.mark.parametrize("n", [4096, 5003])
def test_case(n, gpu_benchmark):
    gpu_benchmark(relu_workload(n=n))
"""
ON_A_GPU = """
from perftests.tests.workloads import relu_workload

def test_case(gpu_benchmark):
    gpu_benchmark(relu_workload(n=1 << 24, device="cuda"))
"""
STAND_IN = """
import json, subprocess, sys
words = sys.argv[1:]
at = words.index("--log-file")
with open({seen!r}, "a") as file:
    file.write(json.dumps(words[at + 2 :]) + chr(10))
done = subprocess.run(words[at + 2 :])
with open(words[at + 1], "w") as file:
    file.write({text!r})
sys.exit(done.returncode)
"""
FAST = (
    *("--bandwatch-max-seconds=0.02", "--bandwatch-max-samples=8", "--bandwatch-ncu"),
    *("-p", "no:cacheprovider", "--benchmark-json=out.json"),
)


@pytest.fixture(scope="module", autouse=True)
def _torch_is_imported() -> None:
    """Import what an inner run needs: its own imports are undone, torch's cannot be."""
    cpu_allocation(lambda: None)


@pytest.fixture
def ncu(
    monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> Callable[[str], Callable[[], list[list[str]]]]:
    """Put a stand-in on PATH that runs its program and writes a text; return what it was given."""

    def make(text: str) -> Callable[[], list[list[str]]]:
        seen, script = pytester.path / "seen", pytester.mkdir("bin") / "ncu"
        body = STAND_IN.format(seen=str(seen), text=text)
        script.write_text(f"#!{sys.executable}\n{body}")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(script.parent))
        return lambda: [json.loads(line) for line in seen.read_text().splitlines()]

    return make


def results() -> list[dict[str, Any]]:
    """Return the results of the session's JSON."""
    found = json.loads(Path("out.json").read_text())["benchmarks"]
    return [one["extra_info"]["bandwatch"]["result"] for one in found]


def test_each_case_has_the_counters_of_its_own_checked_launch_beside_its_time(
    ncu: Callable[[str], Callable[[], list[list[str]]]], pytester: pytest.Pytester
) -> None:
    given = ncu(table(("relu", 1e9, 3)))
    pytester.makepyfile(test_it=CASES)
    pytester.runpytest(*FAST, "-k", "5003").assert_outcomes(passed=1, deselected=1)
    (words,) = given()
    assert [word for word in words if word.endswith("test_it.py::test_case[5003]")]
    assert {"--bandwatch-profile", "--bandwatch-timing=off"} <= set(words)
    (result,) = results()
    counters = result["counters"]
    assert (counters["kernel_name"], counters["dram_read_bytes"]) == ("relu", 3e6)
    assert "counters" not in result["reasons"]
    assert result["status"] in {"ok", "noisy"}
    assert result["summary"]["max_s"] < 0.9, "a profiled launch of a second is none of its times"


def test_forbidden_counters_are_asked_for_once_and_skipped_in_every_case(
    ncu: Callable[[str], Callable[[], list[list[str]]]], pytester: pytest.Pytester
) -> None:
    given = ncu("==ERROR== ERR_NVGPUCTRPERM - no permission")
    pytester.makepyfile(test_it=CASES)
    done = pytester.runpytest(*FAST)
    done.assert_outcomes(passed=2, warnings=2)
    done.stdout.fnmatch_lines(["*PytestWarning: counters not read: the driver forbids *"])
    assert len(given()) == 1
    for result in results():
        assert result["counters"] is None
        assert "ERR_NVGPUCTRPERM" in result["reasons"]["counters"]
        assert result["summary"]["median_s"] > 0


@pytest.mark.gpu
def test_a_case_on_a_gpu_has_its_counters_beside_its_time(
    pytester: pytest.Pytester, gpu: str
) -> None:
    try:
        find_ncu()
    except CountersError as error:
        pytest.skip(str(error))
    pytester.makepyfile(test_it=ON_A_GPU)
    flags = (*FAST, "-p", "perftests.plugin", f"--bandwatch-device={gpu}")
    pytester.runpytest_subprocess(*flags).assert_outcomes(passed=1)
    (result,) = results()
    counters = result["counters"]
    if counters is None:
        pytest.skip(result["reasons"]["counters"])
    assert counters["registers_per_thread"] >= 16
    assert 0 < counters["dram_throughput_percent"] <= 100
    assert 0 < counters["occupancy_percent"] <= 100
    assert 0 <= counters["l2_hit_percent"] <= 100
    assert counters["sectors_per_load_request"] >= 4
    assert counters["warp_efficiency_percent"] == pytest.approx(100, abs=1)
    assert counters["dram_read_bytes"] == pytest.approx(4 << 24, rel=0.1)
    assert result["summary"]["median_s"] < 1e-3
