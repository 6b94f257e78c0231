"""An unfit environment ends the session with one line and status 4, and so it does from a worker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness.environment import cpu_device
from perftests.harness.lock import DeviceLock

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["pytester"]
MEASURES = """
from perftests.tests.workloads import relu_workload

def test_one(gpu_benchmark):
    gpu_benchmark(relu_workload())

def test_two(gpu_benchmark):
    gpu_benchmark(relu_workload(n=4096))

def test_three(gpu_benchmark):
    gpu_benchmark(relu_workload(n=4100))
"""
FAST = (
    *("--bandwatch-device=cpu", "--bandwatch-max-seconds=0.02", "--bandwatch-max-samples=8"),
    *("-p", "perftests.plugin", "-p", "no:cacheprovider", "--bandwatch-timing=on"),
)
REFUSED = f"*environment unfit: cannot measure on cpu-*: process {os.getpid()} * has held it*"


@pytest.fixture
def held() -> Iterator[None]:
    """This process holds the CPU's lock, as seen by one that times on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    uuid = cpu_device()["uuid"]
    torch.set_num_threads(threads)
    with DeviceLock(uuid, timeout_s=60).alone():
        yield


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_held_lock_is_told_once_and_names_its_holder(
    workers: str, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(MEASURES)
    result = pytester.runpytest_subprocess(*FAST, "-n", workers, "--bandwatch-lock-timeout=0.05")
    assert result.ret == 4
    result.stdout.fnmatch_lines([REFUSED])
    told = [line for line in result.outlines + result.errlines if "environment unfit" in line]
    assert len(told) == 1
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.no_fnmatch_line("*failed*")


def test_a_missing_gpu_is_told_before_anything_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("raise AssertionError")
    flags = ("-p", "perftests.plugin", "-p", "no:cacheprovider", "-n", "2")
    result = pytester.runpytest_subprocess(*flags, "--bandwatch-device=cuda:99")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: environment unfit: cannot measure on cuda:99: *"])
    assert f"{result.stdout}{result.stderr}".count("environment unfit") == 1


@pytest.mark.usefixtures("held")
def test_the_fresh_process_after_a_lost_device_hands_it_on(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        MEASURES + "\nfrom perftests.lost import LOST\n"
        "def test_device_was_lost_before(request):\n"
        "    request.config.stash[LOST] = request.node.nodeid\n"
        "def test_after(gpu_benchmark):\n"
        "    gpu_benchmark(relu_workload())\n"
    )
    result = pytester.runpytest_subprocess(
        *FAST, "-k", "lost_before or after", "--bandwatch-lock-timeout=0.05"
    )
    assert result.ret == 4
    result.stdout.fnmatch_lines([REFUSED])
    assert str(result.stdout).count("environment unfit") == 1


def test_a_device_that_has_no_meaning_is_wrong_use(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing():\n    pass\n")
    result = pytester.runpytest_subprocess("-p", "perftests.plugin", "--bandwatch-device=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--bandwatch-device: cannot measure on 'gpu'; expected auto, cpu, cuda or cuda:N"]
    )
