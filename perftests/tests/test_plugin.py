"""The fixture under every way of running pytest, with pytest-benchmark's flags and without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests import nsight
from perftests.harness.allocations import cpu_allocation

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]
GOOD = """
import pytest
from perftests.tests.workloads import relu_workload

def test_good(gpu_benchmark):
    outcome = gpu_benchmark(relu_workload())
    print("timed", len(outcome.seconds))
"""
MIXED = (
    GOOD
    + """
from perftests.tests.workloads import skips_its_tail

def test_bad(gpu_benchmark):
    gpu_benchmark(relu_workload(skips_its_tail))

def test_plain_benchmark(benchmark):
    benchmark(sum, [1, 2])

def test_neither():
    pass
"""
)
CAPS = "--bandwatch-max-seconds=0.02 --bandwatch-max-samples=8"
# As a project has them: what does not time leaves them alone.
FAST = ("--bandwatch-device=cpu", "-o", f"addopts={CAPS}")


@pytest.fixture(scope="module", autouse=True)
def _profiler_is_imported() -> None:
    """Import what torch's profiler brings here: an inner run's imports are undone, torch's cannot be."""
    cpu_allocation(lambda: None)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest in a fresh folder on a test file, on the CPU and for a short time."""

    def run(source: str, *flags: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        return pytester.runpytest(*FAST, "-p", "no:cacheprovider", *flags)

    return run


def saved(path: Path) -> dict[str, Any]:
    """Return the benchmarks of a JSON file by name."""
    return {entry["name"]: entry for entry in json.loads(path.read_text())["benchmarks"]}


def test_plain_pytest_checks_and_times_nothing(run: Callable[..., pytest.RunResult]) -> None:
    result = run(GOOD, "-s", "-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*timed 0*"])
    result.stdout.no_fnmatch_line("*Name (time in*")


def test_plain_pytest_fails_a_wrong_kernel(run: Callable[..., pytest.RunResult]) -> None:
    result = run(MIXED)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["*the chain of trust broke: compare with the reference: *never written*"]
    )


def test_the_json_holds_the_very_samples_and_the_record(
    run: Callable[..., pytest.RunResult], tmp_path: Path, validate: Callable[[Any], Any]
) -> None:
    result = run(MIXED, f"--benchmark-json={tmp_path / 'out.json'}")
    result.assert_outcomes(passed=3, failed=1)
    found = saved(tmp_path / "out.json")
    assert set(found) == {"test_good", "test_plain_benchmark"}
    record = found["test_good"]["extra_info"]["bandwatch"]
    validate(record)
    assert found["test_good"]["stats"]["data"] == record["result"]["measurements_s"]
    assert found["test_good"]["options"]["timer"] == "host_clock_cold"
    assert record["result"]["test"].endswith("::test_good")


def test_a_session_out_of_time_cuts_its_samples_and_says_so(
    run: Callable[..., pytest.RunResult], tmp_path: Path
) -> None:
    source = """
import random, time
from perftests.tests.workloads import relu_of_torch, relu_workload

def irregular(inputs, out):
    time.sleep(random.uniform(0, 2e-3))
    relu_of_torch(inputs, out)

def test_irregular(gpu_benchmark):
    gpu_benchmark(relu_workload(irregular))
"""
    limits = ("--bandwatch-max-seconds=5", "--bandwatch-max-samples=4000")
    path = tmp_path / "out.json"
    result = run(source, *limits, "--bandwatch-budget=0.001", f"--benchmark-json={path}")
    result.assert_outcomes(passed=1)
    record = saved(path)["test_irregular"]["extra_info"]["bandwatch"]["result"]
    assert record["stop_reason"] == "session budget"
    assert len(record["measurements_s"]) >= 7


def test_benchmark_only_times_and_skips_the_rest(run: Callable[..., pytest.RunResult]) -> None:
    result = run(MIXED, "--benchmark-only", "-s")
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*timed [1-9]*"])


def test_benchmark_skip_skips(run: Callable[..., pytest.RunResult]) -> None:
    run(MIXED, "--benchmark-skip").assert_outcomes(passed=1, skipped=3)


def test_benchmark_disable_checks_only(run: Callable[..., pytest.RunResult]) -> None:
    result = run(MIXED, "--benchmark-disable", "-s")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*timed 0*"])


def test_autosave_compare_and_compare_fail_work(run: Callable[..., pytest.RunResult]) -> None:
    run(GOOD, "--benchmark-autosave").assert_outcomes(passed=1)
    again = run(GOOD, "--benchmark-compare", "--benchmark-compare-fail=median:100000%")
    again.assert_outcomes(passed=1)
    again.stderr.fnmatch_lines(["*Comparing against benchmarks*"])
    for row in ("test_good (NOW)*", "test_good (0001_*"):
        again.stdout.fnmatch_lines([row])


def test_grouping_and_sorting_work(run: Callable[..., pytest.RunResult]) -> None:
    flags = ("--benchmark-enable", "--benchmark-group-by=func", "--benchmark-sort=name")
    result = run(GOOD, *flags, "--benchmark-columns=median,rounds")
    result.stdout.fnmatch_lines(["*benchmark 'test_good'*", "Name (time in *Median*Rounds*"])


def test_cprofile_does_not_break_the_replay(run: Callable[..., pytest.RunResult]) -> None:
    run(GOOD, "--benchmark-enable", "--benchmark-cprofile=tottime").assert_outcomes(passed=1)


def test_a_marker_keeps_its_keywords(run: Callable[..., pytest.RunResult], tmp_path: Path) -> None:
    source = GOOD.replace("def test_good", '@pytest.mark.benchmark(group="mine")\ndef test_good')
    run(source, f"--benchmark-json={tmp_path / 'out.json'}").assert_outcomes(passed=1)
    entry = saved(tmp_path / "out.json")["test_good"]
    assert entry["group"] == "mine"
    assert entry["options"]["timer"] == "host_clock_cold"


def test_without_pytest_benchmark_it_checks_and_times(
    run: Callable[..., pytest.RunResult],
) -> None:
    run(GOOD, "-p", "no:benchmark").assert_outcomes(passed=1)
    timed = run(GOOD, "-p", "no:benchmark", "--bandwatch-timing=on", "-s")
    timed.assert_outcomes(passed=1)
    timed.stdout.fnmatch_lines(["*timed [1-9]*"])


def test_the_benchmark_flag_of_another_plugin_turns_timing_on(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(GOOD)
    pytester.makepyfile(
        other="def pytest_addoption(parser):\n"
        "    parser.addoption('--benchmark', action='store_true', dest='something_else')\n"
    )
    pytester.syspathinsert()
    result = pytester.runpytest(
        *FAST, "-p", "no:tracker.pytest_plugin", "-p", "other", "--benchmark", "-s"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*timed [1-9]*"])


def test_the_record_reaches_the_report_once_and_survives_workers(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(MIXED)
    pytester.makeconftest(
        "import json\n"
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'teardown':\n"
        "        kept = [v for k, v in report.user_properties if k == 'bandwatch']\n"
        "        if kept:\n"
        "            with open('kept.jsonl', 'a') as file:\n"
        "                file.write(json.dumps(kept) + chr(10))\n"
    )
    result = pytester.runpytest_subprocess(*FAST, "-n", "2", "--bandwatch-timing=on")
    result.assert_outcomes(passed=3, failed=1)
    kept = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    # Workers and the controller each write: the same two records.
    statuses = sorted({(r["result"]["status"], bool(r["result"]["summary"])) for [r] in kept})
    assert len(statuses) == 2
    assert ("incorrect", False) in statuses


def test_a_second_call_in_a_test_is_an_error(run: Callable[..., pytest.RunResult]) -> None:
    source = GOOD + "    gpu_benchmark(relu_workload())\n"
    result = run(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*gpu_benchmark was called before in this test*"])


def test_an_unknown_mode_is_wrong_use(run: Callable[..., pytest.RunResult]) -> None:
    result = run(GOOD, "--bandwatch-mode=lukewarm")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot measure in mode 'lukewarm'*cold, hot, rotated*"])


OF_TIMING = (
    *("--bandwatch-energy", "--bandwatch-ncu", "--bandwatch-budget=1"),
    *("--bandwatch-max-seconds=1", "--bandwatch-max-samples=9"),
)


@pytest.mark.parametrize("flag", OF_TIMING)
def test_how_to_time_without_timing_is_wrong_use(
    flag: str, run: Callable[..., pytest.RunResult]
) -> None:
    result = run(GOOD, flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = flag.partition("=")[0]
    result.stderr.fnmatch_lines([f"*{name}: this session times nothing; add --benchmark*"])


def test_how_to_time_may_stand_in_the_settings_of_sessions_that_time_nothing(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    plain = run(GOOD, "-o", f"addopts={' '.join(OF_TIMING)}", "-W", "error")
    plain.assert_outcomes(passed=1)
    pytester.makeini(f"[pytest]\naddopts = {' '.join(OF_TIMING)} --benchmark-base\n")
    config = pytester.parseconfigure("--bandwatch-device=cpu")
    child = nsight.arguments(config, "test_a.py::test_good", Path("cache"))
    pytester.makepyfile(test_a=GOOD)
    pytester.run(sys.executable, *child).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "of_ours", [("-p", "bandwatch_inside"), ("--bandwatch-reports=reports.jsonl",)]
)
def test_a_session_that_we_start_takes_its_user_s_flags_whether_it_times_or_not(
    of_ours: tuple[str, ...], run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(bandwatch_inside="")
    pytester.syspathinsert()
    run(GOOD, *of_ours, "--bandwatch-timing=off", *OF_TIMING).assert_outcomes(passed=1)


def test_marks_for_a_profiler_in_a_session_that_times_are_wrong_use(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(GOOD, "--bandwatch-profile", "--bandwatch-timing=on")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--bandwatch-profile: this session times; add*timing=off*"])


def test_what_cannot_be_had_on_a_cpu_is_said_and_recorded(
    run: Callable[..., pytest.RunResult], tmp_path: Path, validate: Callable[[Any], Any]
) -> None:
    path = tmp_path / "out.json"
    result = run(GOOD, "--bandwatch-energy", "--bandwatch-ncu", f"--benchmark-json={path}")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*energy not measured: a CPU has no energy counter*",
            "*counters not read: Nsight Compute counts on a GPU*",
        ]
    )
    record = saved(path)["test_good"]["extra_info"]["bandwatch"]
    validate(record)
    assert record["result"]["counters"] is None


def test_a_profiled_run_checks_and_times_nothing(run: Callable[..., pytest.RunResult]) -> None:
    result = run(GOOD, "--bandwatch-profile", "--bandwatch-timing=off", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*timed 0*"])


def test_what_a_measurement_refuses_is_one_line_and_fails_its_test_alone(
    run: Callable[..., pytest.RunResult],
) -> None:
    source = GOOD.replace("outcome = gpu_benchmark(relu_workload())", "gpu_benchmark({})").replace(
        '    print("timed", len(outcome.seconds))\n', ""
    )
    sources = [
        "relu_workload(n=2), mode='rotated'",
        "relu_workload(bytes_moved=0)",
        "relu_workload(n=4096)",
    ]
    tests = [source.format(each).replace("good", f"t{i}") for i, each in enumerate(sources)]
    result = run("".join(tests), "--bandwatch-timing=on", "-W", "error")
    result.assert_outcomes(passed=1, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "cannot measure relu/under_test float32 [[]2] in mode rotated: it would take *",
            "cannot describe relu/under_test: bytes_moved is 0; *",
        ]
    )
    result.stdout.no_fnmatch_line("*Error*.py*")
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*>  *gpu_benchmark(*")


def test_a_test_may_expect_a_refusal(run: Callable[..., pytest.RunResult]) -> None:
    source = (
        "import pytest\n"
        "from perftests.harness.errors import SettingError\n"
        "from perftests.tests.workloads import relu_workload\n"
        "def test_refused(gpu_benchmark):\n"
        "    with pytest.raises(SettingError, match='in mode rotated'):\n"
        "        gpu_benchmark(relu_workload(n=2), mode='rotated')\n"
    )
    run(source, "--bandwatch-timing=on").assert_outcomes(passed=1)


MODES = """
import warnings
from perftests.tests.workloads import relu_workload

def test_names_none(gpu_benchmark):
    print("mode", gpu_benchmark(relu_workload()).result["case"]["cache"])

def test_names_one(gpu_benchmark):
    print("named", gpu_benchmark(relu_workload(n=4096), mode="cold").result["case"]["cache"])
"""


def test_a_test_that_names_no_mode_takes_the_one_asked_for(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(MODES, "-s", "--bandwatch-mode=hot", "-W", "error")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*mode hot*", "*named cold*"])


def test_a_test_that_names_no_mode_says_which_of_several_it_took(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(MODES, "-s", "--bandwatch-mode=hot,cold")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(
        ["*mode hot*", "*named cold*", "*relu/under_test *: measured in mode hot alone, the first*"]
    )
