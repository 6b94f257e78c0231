"""What pytest-benchmark is told of the GPU, and that it does not compare two models."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from perftests import machine

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]
MEASURES = """
from perftests.tests.workloads import relu_workload

def test_relu(gpu_benchmark):
    gpu_benchmark(relu_workload())
"""
FAST = ("-p", "perftests.plugin", "-p", "no:cacheprovider", "--bandwatch-max-samples=8")
ON_CPU = ("--bandwatch-device=cpu", "--bandwatch-max-seconds=0.05")


def measured_on(model: str | None, pytester: pytest.Pytester, *flags: str) -> pytest.RunResult:
    pytester.makepyfile(MEASURES)
    pytester.makepyfile(
        driven=f"from perftests import machine\nmachine.gpu_model = lambda _config: {model!r}\n"
    )
    pytester.syspathinsert()
    flags = (*FAST, *ON_CPU, "-p", "driven", "--bandwatch-timing=on", *flags)
    return pytester.runpytest_subprocess(*flags)


def saved(folder: Path) -> list[Any]:
    return [json.loads(path.read_text())["machine_info"] for path in folder.rglob("*.json")]


def test_benchmarks_of_another_gpu_model_are_not_compared(pytester: pytest.Pytester) -> None:
    first = measured_on("NVIDIA A100", pytester, "--benchmark-autosave")
    first.assert_outcomes(passed=1)
    assert [info["gpu_model"] for info in saved(pytester.path)] == ["NVIDIA A100"]
    same = measured_on("NVIDIA A100", pytester, "--benchmark-compare")
    same.assert_outcomes(passed=1)
    other = measured_on("NVIDIA H200", pytester, "--benchmark-compare")
    assert other.ret == pytest.ExitCode.USAGE_ERROR
    told = [line for line in other.stderr.lines if "cannot compare" in line]
    assert len(told) == 1
    assert "measured on NVIDIA A100, this session measures on NVIDIA H200" in told[0]
    assert "Traceback" not in other.stderr.str()


def test_a_cpu_has_no_gpu_model(pytester: pytest.Pytester) -> None:
    measured_on(None, pytester, "--benchmark-autosave").assert_outcomes(passed=1)
    assert ["gpu_model" in info for info in saved(pytester.path)] == [False]
    measured_on(None, pytester, "--benchmark-compare").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("name", "expected"), [("cpu", None), ("cuda:1", "model of cuda:1"), ("cuda:2", None)]
)
def test_the_model_is_that_of_the_device_that_is_measured(
    name: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"model of {device}")
    config = cast("pytest.Config", SimpleNamespace(getoption=lambda _name: name))
    assert machine.gpu_model(config) == expected
