"""A lost device fails one test; the others run in a fresh process and report as ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
LOSES = """
import pytest
from perftests.harness import cpu
from perftests.harness.errors import ChainBrokenError, Link
from perftests.tests.workloads import relu_of_torch, relu_workload, skips_its_tail

def lost(self):
    raise ChainBrokenError(Link.DEVICE, "an illegal memory access was encountered", sticky=True)

def loses_the_device(inputs, out):
    cpu.CpuDevice.synchronize = lost

def test_before(gpu_benchmark):
    gpu_benchmark(relu_workload())

def test_loses(gpu_benchmark):
    gpu_benchmark(relu_workload(loses_the_device))

def test_after(gpu_benchmark):
    gpu_benchmark(relu_workload())

def test_wrong(gpu_benchmark):
    gpu_benchmark(relu_workload(skips_its_tail))

def test_of_something_else():
    pass

def test_left_out():
    pytest.skip("not here")
"""
CRASHES = """
import os

def test_ends_the_process(gpu_benchmark):
    os._exit(7)
"""
KEEPS = """
import json

def pytest_runtest_logreport(report):
    kept = [v for k, v in report.user_properties if k == 'bandwatch']
    if report.when == 'call' and kept:
        with open('kept.jsonl', 'a') as file:
            file.write(json.dumps([report.nodeid, kept[0]['result']['status']]) + chr(10))
"""
FAST = (
    *("--bandwatch-device=cpu", "--bandwatch-max-seconds=0.02", "--bandwatch-max-samples=8"),
    *("-p", "perftests.plugin", "-p", "no:cacheprovider", "--bandwatch-timing=on"),
)


def test_the_others_run_in_a_fresh_process_and_their_records_arrive(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(LOSES)
    pytester.makepyfile(keeps=KEEPS)
    pytester.syspathinsert()
    result = pytester.runpytest_subprocess(*FAST, "-p", "keeps", "-ra")
    result.assert_outcomes(passed=3, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * not here"])
    result.stdout.fnmatch_lines(
        [
            "*the chain of trust broke: device error: an illegal memory access was encountered",
            "*the chain of trust broke: compare with the reference: *never written*",
        ]
    )
    kept = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    found = {nodeid.split("::")[1]: status for nodeid, status in kept}
    assert set(found) == {"test_before", "test_loses", "test_after", "test_wrong"}
    assert found["test_loses"] == "error"
    assert found["test_after"] in {"ok", "noisy"}
    assert found["test_wrong"] == "incorrect"


def test_a_fresh_process_that_dies_fails_the_tests_it_owed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LOSES + CRASHES)
    result = pytester.runpytest_subprocess(*FAST, "-k", "loses or ends")
    result.assert_outcomes(failed=2, deselected=5)
    result.stdout.fnmatch_lines(["*no report came from the fresh process*it ended with 7*"])


@pytest.mark.gpu
def test_an_illegal_address_fails_its_own_test_alone(pytester: pytest.Pytester, gpu: str) -> None:
    pytester.makepyfile(
        """
import cupy
from perftests.tests.workloads import relu_workload

CODE = 'extern "C" __global__ void wild(float* p) { p[threadIdx.x] = 1; }'
wild = cupy.RawKernel(CODE, "wild")

def strays(inputs, out):
    wild((1,), (32,), (cupy.uint64(16),))

def test_strays(gpu_benchmark):
    gpu_benchmark(relu_workload(strays, device="cuda"))

def test_after(gpu_benchmark):
    gpu_benchmark(relu_workload(device="cuda"))
"""
    )
    flags = [flag for flag in FAST if "device" not in flag]
    result = pytester.runpytest_subprocess(*flags, f"--bandwatch-device={gpu}")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the chain of trust broke: device error: *"])
