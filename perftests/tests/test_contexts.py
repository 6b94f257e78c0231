"""Contexts and their streams, as many as a driver gives: a faked one's, and a GPU's."""

from __future__ import annotations

import ctypes
from itertools import islice
from typing import Any

import pytest
import torch

from perftests.harness import contexts
from perftests.harness.contexts import context_streams


class Driver:
    """A driver that refuses the call `refused`, from the `after`-th on; handles count up."""

    def __init__(self, refused: str = "", after: int = 0) -> None:
        self.refused, self.after = refused, after
        self.said: list[str] = []
        self.handles = 0

    def __getattr__(self, name: str) -> Any:
        def call(out: Any, *_given: Any) -> int:
            if name == self.refused and self.said.count(name) == self.after:
                return 801
            self.said.append(name)
            if name != "cuDeviceGetDevResource":
                self.handles += 1
                out._obj.value = self.handles
            return 0

        return call


def test_each_stream_has_a_context_of_its_own() -> None:
    driver = Driver()
    streams = list(islice(contexts._made(driver, 0), 3))
    assert len(set(streams)) == 3
    counted = {name: driver.said.count(name) for name in set(driver.said)}
    assert counted == {
        "cuDeviceGet": 1,
        "cuDeviceGetDevResource": 1,
        "cuDevResourceGenerateDesc": 3,
        "cuGreenCtxCreate": 3,
        "cuGreenCtxStreamCreate": 3,
    }


@pytest.mark.parametrize(
    ("refused", "after", "streams"),
    [
        ("cuDeviceGet", 0, 0),
        ("cuDeviceGetDevResource", 0, 0),
        ("cuDevResourceGenerateDesc", 0, 0),
        ("cuGreenCtxCreate", 0, 0),
        ("cuGreenCtxCreate", 2, 2),
        ("cuGreenCtxStreamCreate", 1, 1),
    ],
)
def test_what_the_driver_refuses_ends_the_streams(refused: str, after: int, streams: int) -> None:
    assert len(list(islice(contexts._made(Driver(refused, after), 0), 5))) == streams


@pytest.mark.parametrize("missing", [OSError("no such library"), AttributeError("no such symbol")])
def test_without_a_driver_that_knows_contexts_there_are_none(
    missing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_name: str) -> None:
        raise missing

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert context_streams.__wrapped__(0, 3) == ()


@pytest.mark.gpu
def test_streams_of_contexts_have_the_whole_device_and_share_its_memory(gpu: str) -> None:
    data = torch.zeros(1 << 20, device=gpu)
    torch.cuda.synchronize()
    handles = context_streams(0, 3)
    assert len(set(handles)) == 3
    assert context_streams(0, 3) is handles, "once for a process"
    for handle in handles:
        with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
            data += 1
        torch.cuda.synchronize()
    assert bool((data == 3).all())
