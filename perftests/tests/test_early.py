"""Clocks and timers are bound before a test's module can replace them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perftests import early
from perftests.harness import clock

pytest_plugins = ["pytester"]
PATCHES = """
import time
real, real_ns, asleep = time.perf_counter, time.perf_counter_ns, time.sleep
time.perf_counter = lambda: real() / 10
time.perf_counter_ns = lambda: real_ns() // 10

from perftests.tests.workloads import relu_of_torch, relu_workload

def takes_two_milliseconds(inputs, out):
    asleep(2e-3)
    relu_of_torch(inputs, out)

def test_patched(gpu_benchmark):
    gpu_benchmark(relu_workload(takes_two_milliseconds))
"""
COUNTS = """
import torch
from perftests.tests.workloads import relu_workload

real, calls = torch.cuda.Event.record, []

def counted(event, stream=None):
    calls.append(event)
    return real(event) if stream is None else real(event, stream)

torch.cuda.Event.record = counted

def test_counted(gpu_benchmark):
    outcome = gpu_benchmark(relu_workload(device="cuda"))
    assert len(calls) < len(outcome.seconds)
"""
SEES = """
import sys

def test_sees():
    assert {expected} == ("torch" in sys.modules)
    assert {expected} == ("perftests.harness.cuda_runners" in sys.modules)
"""
FAST = ("-p", "perftests.plugin", "-p", "no:cacheprovider", "--bandwatch-max-samples=8")


def test_a_module_that_replaces_the_clocks_changes_no_rate(pytester: pytest.Pytester) -> None:
    """A clock that runs ten times too slow would show 0.2 ms."""
    pytester.makepyfile(PATCHES)
    path = Path("out.json").resolve()
    result = pytester.runpytest_subprocess(
        *FAST, "--bandwatch-device=cpu", "--bandwatch-max-seconds=0.05", f"--benchmark-json={path}"
    )
    result.assert_outcomes(passed=1)
    [found] = json.loads(path.read_text())["benchmarks"]
    assert found["extra_info"]["bandwatch"]["result"]["summary"]["median_s"] >= 2e-3


@pytest.mark.gpu
def test_a_module_that_replaces_torchs_events_is_not_asked_for_a_time(
    pytester: pytest.Pytester, gpu: str
) -> None:
    pytester.makepyfile(COUNTS)
    flags = (*FAST[:-1], f"--bandwatch-device={gpu}", "--bandwatch-timing=on")
    pytester.runpytest_subprocess(*flags).assert_outcomes(passed=1)


def test_the_clocks_are_the_systems_own() -> None:
    assert clock.perf_counter is time.perf_counter
    assert clock.perf_counter_ns is time.perf_counter_ns
    assert clock.monotonic is time.monotonic


@pytest.mark.parametrize(
    ("has_driver", "flags", "expected"),
    [
        (True, ("--bandwatch-timing=on",), True),
        (True, (), False),
        (False, ("--bandwatch-timing=on",), False),
    ],
)
def test_what_times_on_a_gpu_is_there_before_the_tests_are_collected(
    *, has_driver: bool, flags: tuple[str, ...], expected: bool, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(SEES.format(expected=expected))
    pytester.makepyfile(
        driven=f"from perftests import early\nearly.has_driver = lambda: {has_driver}\n"
    )
    pytester.syspathinsert()
    result = pytester.runpytest_subprocess(*FAST[:-1], "-p", "driven", *flags)
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("options", "attributes", "imported"),
    [
        ({}, {}, True),
        ({"dist": "load"}, {}, False),  # its workers measure
        ({"dist": "load"}, {"workerinput": {}}, True),
        ({"--bandwatch-device": "cpu"}, {}, False),
        ({"collectonly": True}, {}, False),
    ],
)
def test_torch_is_imported_only_where_this_process_will_measure(
    options: dict[str, Any],
    attributes: dict[str, Any],
    imported: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []
    monkeypatch.setattr(early, "import_module", found.append)
    monkeypatch.setattr(early, "has_driver", lambda: True)
    config = SimpleNamespace(
        option=SimpleNamespace(collectonly=options.get("collectonly", False)),
        getoption=lambda name, default="auto": options.get(name, default),
        **attributes,
    )
    early.bind_timers(cast("pytest.Config", config))
    assert bool(found) == imported
