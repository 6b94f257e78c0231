"""A window of a GPU whose state NVML could not tell is marked, once, and stays usable. No GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from perftests.harness import timing
from perftests.harness.record import Findings, envelope
from perftests.harness.state import Watch
from perftests.harness.timing import time_workload
from perftests.tests.fake_nvml import FakeNvml
from perftests.tests.test_timing import MOVED, Device, FakeBench
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from perftests.harness.session import Bench

ABSENT = "NVML is absent: nvidia-ml-py is not installed"
REFUSED = frozenset({"nvmlDeviceGetComputeRunningProcesses"})


class NoAllocations:
    """Watches nothing."""

    def __init__(self, *_: object) -> None:
        """Take a device and CuPy."""

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *_: object) -> None:
        """Nothing."""

    def found(self) -> None:
        """Nothing was found."""


def timed(monkeypatch: pytest.MonkeyPatch, watch: Watch, kind: str) -> Findings:
    """Time scripted launches of 10 us under a watch."""
    monkeypatch.setattr(timing, "GpuAllocations", NoAllocations)
    monkeypatch.setattr(timing, "cpu_allocation", lambda _launch: None)
    found = Findings(relu_workload(bytes_moved=MOVED), "cold")
    bench = cast("Bench", FakeBench(Device(lambda _: 1e-5, kind=kind), watch))
    time_workload(found, bench, [lambda: None], lambda: None).accept(found)
    return found


@pytest.mark.parametrize(
    ("watch", "begin", "cure"),
    [
        (Watch(absent=ABSENT), ABSENT, "install nvidia-ml-py"),
        (Watch(handle=1, nvml=FakeNvml(refused=REFUSED)), "NVML refused other_processes (", "user"),
    ],
)
def test_a_window_that_nvml_could_not_tell_all_of_is_marked_in_one_line(
    watch: Watch,
    begin: str,
    cure: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = timed(monkeypatch, watch, "cuda")
    assert found.status == "ok", "else a machine without NVML would have no baseline at all"
    record = envelope(found, {"backend": "cuda", "gpu_model": "a GPU"}, {"uuid": "GPU-1"})
    (warning,) = record["result"]["warnings"]
    assert warning["code"] == "nvml"
    assert warning["message"].startswith(begin)
    assert cure in warning["message"]
    assert "\n" not in warning["message"]


def test_each_value_that_nvml_refused_has_its_reason_under_its_own_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = FakeNvml(refused=frozenset({"nvmlDeviceGetPowerUsage", "nvmlDeviceGetMigMode"}))
    watch = Watch(handle=1, nvml=nvml)
    assert watch.ask("nvmlDeviceGetMigMode") is None
    found = timed(monkeypatch, watch, "cuda")
    parts = [f"{when}.power_w" for when in ("before", "during", "after")]
    assert set(found.reasons) == {*parts, "environment.nvmlDeviceGetMigMode"}
    assert all(reason.startswith("NVML refused: ") for reason in found.reasons.values())


def test_a_cpu_and_a_gpu_that_told_all_have_no_such_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timed(monkeypatch, Watch(absent="a CPU has no NVML"), "cpu").warnings == {}
    watch = Watch(handle="handle", nvml=FakeNvml())
    assert timed(monkeypatch, watch, "cuda").warnings == {}
