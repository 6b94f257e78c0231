"""A call that fails and says nothing, as a kernel launched from C++ without a check does.

CUDA's runtime keeps the error for whoever asks next, in the same thread and the same runtime.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness.chain import measure
from perftests.harness.errors import Link
from perftests.tests import workloads
from perftests.tests.test_saboteurs import refused
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.gpu
LEAVES = """
import torch
from perftests.tests.test_untold_gpu import runtimes
from perftests.tests.workloads import relu_workload

def test_leaves_an_error():
    torch.zeros(1, device="cuda")
    for runtime in runtimes():
        runtime.cudaSetDevice(9999)

def test_is_not_blamed(gpu_benchmark):
    gpu_benchmark(relu_workload(device="cuda"))
"""
_NO_SUCH_DEVICE = 9999


def runtimes() -> list[ctypes.CDLL]:
    """Return the CUDA runtimes that this process has loaded: torch's among them."""
    maps = Path("/proc/self/maps").read_text()
    return [ctypes.CDLL(path) for path in sorted(set(re.findall(r"/\S*libcudart\S*", maps)))]


@pytest.mark.parametrize("n", [5003, 1 << 22])
def test_an_error_that_a_launch_does_not_tell_is_its_own_broken_link(
    n: int, quick_session: Session, gpu: str
) -> None:
    torch.zeros(1, device=gpu)
    loaded = runtimes()
    if not loaded:
        pytest.skip("torch has the CUDA runtime linked in here")

    def fails_without_a_word(inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        for runtime in loaded:
            runtime.cudaSetDevice(_NO_SUCH_DEVICE)

    outcome = measure(relu_workload(fails_without_a_word, n=n, device=gpu), quick_session)
    refused(outcome, Link.LAUNCH, "error", "CUDA error: invalid device ordinal")
    assert outcome.broken is not None
    assert not outcome.broken.sticky
    assert measure(relu_workload(n=n, device=gpu), quick_session).broken is None


def test_the_next_test_is_not_blamed_for_an_error_that_one_left(
    pytester: pytest.Pytester, gpu: str
) -> None:
    torch.zeros(1, device=gpu)
    if not runtimes():
        pytest.skip("torch has the CUDA runtime linked in here")
    pytester.makepyfile(LEAVES)
    flags = ("-p", "perftests.plugin", "-p", "no:cacheprovider", f"--bandwatch-device={gpu}")
    result = pytester.runpytest_subprocess(*flags)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*failed and nothing told so: *cudaErrorInvalidDevice (101)*"])
