"""Work on a stream that the harness once made current, on a GPU: another has its turn by then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests import unfit
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
SUITE = """
from perftests.tests.workloads import relu_workload

def test_relu(gpu_benchmark):
    gpu_benchmark(relu_workload(device="cuda"))
"""
TELLS = """
def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        if name == "bandwatch" and report.when == "teardown":
            print([" ".join(each.values()) for each in value["result"]["warnings"]])
"""


class HalfOnAKeptStream:
    """Computes half of the output on the stream of its call number `which`, from then on."""

    def __init__(self, which: int) -> None:
        self.which = which
        self.streams: list[torch.cuda.Stream] = []

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.streams.append(torch.cuda.current_stream())
        half = out.numel() // 2
        workloads.relu_of_torch((inputs[0][:half],), out[:half])
        kept = self.streams[min(self.which, len(self.streams) - 1)]
        with torch.cuda.stream(kept):
            workloads.relu_of_torch((inputs[0][half:],), out[half:])


@pytest.mark.parametrize("host_s", [0.001, 0.005])
def test_a_slow_host_hides_no_work_on_another_stream(
    host_s: float, quick_session: Session, gpu: str
) -> None:
    """Launched when the hold is over, and copied when it is done, such work would look right."""
    side = torch.cuda.Stream()

    def slowly_on_another_stream(inputs: Inputs, out: torch.Tensor) -> None:
        time.sleep(host_s)
        with torch.cuda.stream(side):
            workloads.relu_of_torch(inputs, out)
        time.sleep(host_s)

    outcome = measure(relu_workload(slowly_on_another_stream, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


def test_a_launch_that_waits_for_the_device_passes_with_a_warning(
    check_session: Session, gpu: str
) -> None:
    def waits(inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        torch.cuda.synchronize()

    told = [
        measure(relu_workload(launch, device=gpu), check_session).result["warnings"]
        for launch in (workloads.relu_of_torch, waits)
    ]
    assert [[warning["code"] for warning in one] for one in told] == [[], ["order_unseen"]]


@pytest.mark.parametrize("variable", ["CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING"])
def test_where_streams_wait_for_each_other_cases_are_checked_and_not_timed(
    variable: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, gpu: str
) -> None:
    monkeypatch.setenv(variable, "1")
    pytester.makepyfile(SUITE)
    pytester.makeconftest(TELLS)
    flags = ("-p", "perftests.plugin", "-p", "no:tracker.pytest_plugin", "-p", "no:cacheprovider")
    checked = pytester.runpytest_subprocess(*flags, "-s", "--bandwatch-timing=off")
    checked.assert_outcomes(passed=1)
    checked.stdout.fnmatch_lines([f"*order_unseen*unset {variable}=1*"])
    timed = pytester.runpytest_subprocess(*flags, "-s", "--bandwatch-timing=on")
    assert timed.ret == unfit.EXIT
    timed.stdout.fnmatch_lines([f"*cannot time on this GPU: *unset {variable}=1*"])


def test_work_on_the_stream_of_its_first_call_is_refused(quick_session: Session, gpu: str) -> None:
    """Right on one stream for ever: timed on the next, it would show an empty launch."""
    kept: list[torch.cuda.Stream] = []

    def on_its_first_stream(inputs: Inputs, out: torch.Tensor) -> None:
        kept.append(torch.cuda.current_stream())
        with torch.cuda.stream(kept[0]):
            workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(on_its_first_stream, n=1 << 20, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


@pytest.mark.parametrize("which", [0, 1, 2, 20])
def test_half_of_the_work_on_a_kept_stream_is_refused(
    which: int, quick_session: Session, gpu: str
) -> None:
    """The first call and the look at the order have one each; further ones are timed."""
    device: Any = quick_session.bench(torch.device(gpu)).device
    assert device.sets_needed("cold", 2 << 24) > 1, "in one place one stream is timed, and no other"
    outcome = measure(relu_workload(HalfOnAKeptStream(which), n=1 << 22, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")
