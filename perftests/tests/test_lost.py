"""A device that a test loses is noticed after that test, whatever it was that launched."""

from __future__ import annotations

import pytest

from perftests.lost import loaded_driver, lost_by
from perftests.tests.fake_driver import Driver

pytest_plugins = ["pytester"]
FAST = (
    *("--bandwatch-device=cpu", "-p", "perftests.plugin", "-p", "no:cacheprovider"),
    *("-W", "error::pytest.PytestUnhandledThreadExceptionWarning"),
)
LOSES = """
from perftests import lost
from perftests.tests.fake_driver import Driver

def lose():
    lost.loaded_driver = lambda: Driver(lost=(0,))

def is_alive():
    return lost.lost_by(lost.loaded_driver()) is None
"""
PLAIN = (
    LOSES
    + """
def test_loses_and_fails():
    lose()
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def test_after():
    assert is_alive()

def test_loses_and_passes():
    lose()

def test_after_that():
    assert is_alive()

def test_measures(gpu_benchmark):
    assert is_alive()
"""
)
MEASURED = (
    LOSES
    + """
from perftests.tests.workloads import relu_workload

def reference(inputs):
    lose()
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def make_inputs(seed):
    return reference(())

def test_loses_in_its_reference(gpu_benchmark):
    gpu_benchmark(relu_workload(reference=reference))

def test_loses_in_its_inputs(gpu_benchmark):
    assert is_alive()
    gpu_benchmark(relu_workload(make_inputs=make_inputs))

def test_after(gpu_benchmark):
    assert is_alive()
    gpu_benchmark(relu_workload())
"""
)
STRAYS = """
import cupy
import torch
from perftests.tests.workloads import relu_workload

CODE = 'extern "C" __global__ void wild(float* p) { p[threadIdx.x] = 1; }'
wild = cupy.RawKernel(CODE, "wild")

def strays(*_):
    torch.zeros(1, device="cuda")
    wild((1,), (32,), (cupy.uint64(16),))
    torch.cuda.synchronize()
"""
PLACES = {
    "a plain test": "def test_strays():\n    strays()\n",
    "CuPy alone": "def test_strays():\n    wild((1,), (32,), (cupy.uint64(16),))\n    assert 0\n",
    "a test that passes": "def test_strays():\n    wild((1,), (32,), (cupy.uint64(16),))\n",
    "a reference": (
        "def test_strays(gpu_benchmark):\n"
        "    gpu_benchmark(relu_workload(device='cuda', reference=strays))\n"
    ),
    "inputs": (
        "def test_strays(gpu_benchmark):\n"
        "    gpu_benchmark(relu_workload(device='cuda', make_inputs=strays))\n"
    ),
}
GOES_ON = """
def test_after(gpu_benchmark):
    gpu_benchmark(relu_workload(device="cuda"))
"""


def test_a_driver_that_nobody_uses_has_lost_nothing() -> None:
    assert lost_by(None) is None
    assert lost_by(Driver(started=False, lost=(0,))) is None
    assert lost_by(Driver(devices=2, used=(), lost=(0, 1))) is None


def test_the_error_of_any_device_in_use_is_told_and_all_is_put_back() -> None:
    driver = Driver(devices=3, used=(0, 2), lost=(2,))
    assert lost_by(driver) == "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    assert (driver.current, driver.retained) == ([], 0)
    assert lost_by(Driver(lost=(0,), told=[719, 719])) == "CUDA error (719)"


def test_an_error_that_is_gone_when_asked_again_has_lost_nothing() -> None:
    assert lost_by(Driver(told=[2])) is None


def test_asking_does_not_load_the_driver() -> None:
    assert lost_by(loaded_driver()) is None


def test_a_plain_test_that_loses_the_device_fails_alone(pytester: pytest.Pytester) -> None:
    """One that passed all the same is failed, else the next would be blamed."""
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess(*FAST)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*RuntimeError: CUDA error: an illegal memory access was encountered*",
            "*the device was lost in the call of this test: CUDA_ERROR_ILLEGAL_ADDRESS (700)*",
        ]
    )


def test_a_session_that_measures_nothing_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LOSES + "\ndef test_loses():\n    lose()\n\ndef test_b():\n    pass\n")
    pytester.runpytest_subprocess(*FAST).assert_outcomes(passed=2)


def test_a_reference_and_inputs_that_lose_the_device_fail_their_own_tests_alone(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(MEASURED)
    result = pytester.runpytest_subprocess(*FAST)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.no_fnmatch_line("*no report came*")


@pytest.mark.gpu
@pytest.mark.parametrize("place", PLACES)
def test_a_real_loss_fails_its_own_test_alone(
    place: str, pytester: pytest.Pytester, gpu: str
) -> None:
    pytester.makepyfile(STRAYS + PLACES[place] + GOES_ON)
    flags = [flag for flag in FAST if "device" not in flag]
    result = pytester.runpytest_subprocess(*flags, f"--bandwatch-device={gpu}")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED *test_strays*"])


def test_a_test_that_replaces_the_loader_of_libraries_breaks_nothing(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        "import ctypes\n"
        "def test_replaces(monkeypatch):\n"
        "    monkeypatch.setattr(ctypes, 'CDLL', lambda name: None)\n"
        "def test_measures(gpu_benchmark):\n"
        "    pass\n"
    )
    pytester.runpytest_subprocess(*FAST).assert_outcomes(passed=2)
