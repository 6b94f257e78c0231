"""The driver is only touched while the device of the launch is current, on a stand-in for CuPy."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernels import launch
from kernels.build import Cubin


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was asked of CUDA, each with the device that was current; device 0 is at first."""
    current, made = [0], []

    def told(name: str, result: object = None) -> Any:
        def call(*values: object) -> object:
            if name == "setDevice":
                current[0] = int(str(values[0]))
            made.append((name, current[0]))
            return result

        return call

    @contextmanager
    def device(index: int) -> Iterator[None]:
        before, current[0] = current[0], index
        yield
        current[0] = before

    driver = SimpleNamespace(
        moduleLoadData=told("load", 7),
        moduleGetFunction=told("function", 9),
        launchKernel=told("launch"),
    )
    runtime = SimpleNamespace(setDevice=told("setDevice"))
    cupy = SimpleNamespace(cuda=SimpleNamespace(driver=driver, runtime=runtime))
    monkeypatch.setattr(launch, "_cupy", lambda: cupy)
    monkeypatch.setattr(launch, "current_device", lambda: current[0])
    monkeypatch.setattr(launch, "current_stream", lambda _index: 0)
    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return made


def test_the_first_device_stays_current_when_the_second_is_used(
    calls: list[tuple[str, int]],
) -> None:
    cubin: Any = SimpleNamespace(code=b"", source=None)
    assert Cubin.__dataclass_fields__.keys() >= {"code", "source"}
    function = launch.Module(cubin, 1).function("f", "Pq", 128)
    assert launch.current_device() == 0
    function(1, 0, 0)
    function.bind(1, 0, 0)()
    assert launch.current_device() == 0
    assert [device for name, device in calls] == [1] * len(calls)
    assert [name for name, _ in calls].count("launch") == 2
