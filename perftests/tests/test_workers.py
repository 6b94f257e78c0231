"""Parallel workers of one session: spread over the GPUs, one timing at a time on each device."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]
TWO = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two NVIDIA GPUs here"),
]
SUITE = """
import pytest
from perftests.tests.workloads import relu_workload

@pytest.mark.parametrize("case", range(8))
def test_relu(case, gpu_benchmark, bandwatch_device):
    gpu_benchmark(relu_workload(n=1 << 20, device=str(bandwatch_device)))
"""
# The session alone writes, as who records does; workers note when they hold a device alone.
WATCH = """
import json, os, time
from perftests.harness.lock import DeviceLock

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ or report.when != "teardown":
        return
    with open("records.jsonl", "a") as file:
        for name, value in report.user_properties:
            if name == "bandwatch":
                file.write(json.dumps(value) + chr(10))

_alone = DeviceLock.alone

def alone(self):
    from contextlib import contextmanager
    @contextmanager
    def held():
        with _alone(self):
            began = time.monotonic()
            yield
            ended = time.monotonic()
        with open(f"held-{os.getpid()}.jsonl", "a") as file:
            file.write(json.dumps([self._uuid, began, ended]) + chr(10))
    return held()

DeviceLock.alone = alone
"""


def read(files: list[Path]) -> list[Any]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("device", "count"), [("cpu", 1), pytest.param("cuda", 2, marks=TWO)], ids=["cpu", "two GPUs"]
)
def test_workers_spread_over_the_devices_and_take_turns_on_each(
    device: str, count: int, pytester: pytest.Pytester
) -> None:
    """No two workers time on one device at once, and all devices are used."""
    pytester.makepyfile(SUITE)
    pytester.makeconftest(WATCH)
    flags = ("-p", "perftests.plugin", "-p", "no:tracker.pytest_plugin", "-p", "no:cacheprovider")
    caps = ("--bandwatch-max-seconds=0.05", "--bandwatch-timing=on", f"-n{2 * count}")
    result = pytester.runpytest_subprocess(*flags, *caps, f"--bandwatch-device={device}")
    result.assert_outcomes(passed=8)
    records = read([pytester.path / "records.jsonl"])
    assert len(records) == 8
    assert len({record["device"]["uuid"] for record in records}) == count
    assert all(record["result"]["measurements_s"] for record in records)
    windows = defaultdict(list)
    for uuid, began, ended in read(sorted(pytester.path.glob("held-*.jsonl"))):
        windows[uuid].append((began, ended))
    assert sum(map(len, windows.values())) >= 8
    assert len(windows) == count
    for held in windows.values():
        held.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(held))
