"""Contexts and their streams, as many as a driver gives: a faked one's, and a GPU's."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from perftests.harness import contexts
from perftests.harness.contexts import context_streams, streams_of_contexts

GIB = 1 << 30
ORDINAL, DEVICE = 1, 11


class Driver:
    """A driver that checks what it is given and refuses the call `refused` from `after` on."""

    def __init__(self, refused: str = "", after: int = 0) -> None:
        self.refused, self.after = refused, after
        self.said: list[str] = []
        self.streams: list[int] = []
        self.what = self.context = 0

    def _refuses(self, name: str) -> bool:
        self.said.append(name)
        return name == self.refused and self.said.count(name) > self.after

    def _new(self, out: Any) -> int:
        out._obj.value = 1000 + len(self.said)
        return int(out._obj.value)

    def cuDeviceGet(self, out: Any, ordinal: int) -> int:
        assert ordinal == ORDINAL
        out._obj.value = DEVICE
        return 101 * self._refuses("cuDeviceGet")

    def cuDeviceGetDevResource(self, device: Any, resource: Any, kind: int) -> int:
        assert (device.value, kind) == (DEVICE, 1), "CU_DEV_RESOURCE_TYPE_SM"
        assert ctypes.sizeof(resource) >= 144
        resource[:2] = b"SM"
        return 801 * self._refuses("cuDeviceGetDevResource")

    def cuDevResourceGenerateDesc(self, out: Any, resource: Any, count: int) -> int:
        assert (resource[:2], count) == (b"SM", 1)
        refuses = self._refuses("cuDevResourceGenerateDesc")
        self.what = self._new(out)
        return 801 * refuses

    def cuGreenCtxCreate(self, out: Any, what: Any, device: Any, flags: int) -> int:
        assert (what.value, device.value, flags) == (self.what, DEVICE, 1)
        refuses = self._refuses("cuGreenCtxCreate")
        self.context = self._new(out)
        return 2 * refuses

    def cuGreenCtxStreamCreate(self, out: Any, context: Any, flags: int, priority: int) -> int:
        assert (context.value, flags, priority) == (self.context, 1, 0), "non-blocking"
        if self._refuses("cuGreenCtxStreamCreate"):
            return 2
        self.streams.append(self._new(out))
        return 0


def test_each_stream_has_a_context_of_its_own() -> None:
    driver = Driver()
    streams = list(islice(contexts._made(driver, ORDINAL), 3))
    assert streams == driver.streams
    assert len(set(streams)) == 3
    counted = [driver.said.count(name) for name in ("cuGreenCtxCreate", "cuDeviceGet")]
    assert counted == [3, 1]


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
    driver = Driver(refused, after)
    assert len(list(islice(contexts._made(driver, ORDINAL), 5))) == streams


def test_a_driver_that_lacks_one_of_the_calls_makes_no_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(Driver, "cuGreenCtxStreamCreate")
    driver = Driver()
    with pytest.raises(AttributeError):
        list(islice(contexts._made(driver, ORDINAL), 1))
    assert driver.said == []


@pytest.mark.parametrize("missing", [OSError("no such library"), AttributeError("no such symbol")])
def test_without_a_driver_that_knows_contexts_there_are_none(
    missing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_name: str) -> None:
        raise missing

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert context_streams.__wrapped__(0, 3) == ()


@pytest.mark.parametrize(
    ("memory", "free", "given", "asked", "used"),
    [
        (128 * GIB, 100 * GIB, 63, [63], 63),
        (128 * GIB, 100 * GIB, 40, [63], 40),
        (128 * GIB, 100 * GIB, 7, [63], 7),
        (128 * GIB, 100 * GIB, 6, [63], 0),
        (128 * GIB, 7 * GIB, 63, [], 0),
        (8 * GIB, 6 * GIB, 63, [21], 21),
        (2 * GIB, 2 * GIB, 63, [], 0),
        (128 * GIB, 100 * GIB, 0, [63], 0),
    ],
)
def test_there_are_as_many_as_the_memory_and_the_driver_allow_and_never_a_few(
    memory: int, free: int, given: int, asked: list[int], used: int, fake: Any
) -> None:
    fake.given, fake.free = given, free
    fake.properties = SimpleNamespace(total_memory=memory)
    streams = streams_of_contexts(fake, 63)
    assert fake.asked == asked
    assert [stream.cuda_stream for stream in streams] == list(range(1000, 1000 + used))
    assert all(stream.device is fake.device for stream in streams)


@pytest.mark.parametrize("step", ["flush", "empty", "record"])
def test_contexts_that_do_not_run_what_a_measurement_needs_are_left_alone(
    step: str, fake: Any
) -> None:
    fake.given, fake.breaks = 63, step
    assert streams_of_contexts(fake, 63) == ()
    assert fake.said[-1] == step


class FakeDevice(SimpleNamespace):
    """A device whose contexts are told by what was asked of them."""

    def on(self, _stream: Any) -> Any:
        return nullcontext()

    def step(self, name: str) -> None:
        self.said.append(name)
        if name == self.breaks:
            raise RuntimeError(f"no {name} on a green context")

    def flush(self, _stream: Any) -> None:
        self.step("flush")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    made = FakeDevice(
        device=torch.device("cuda", 1), asked=[], said=[], breaks="", given=0, free=100 * GIB
    )
    made.properties = SimpleNamespace(total_memory=128 * GIB)
    made.kernels = SimpleNamespace(empty=lambda: made.step("empty"))

    def streams(ordinal: int, count: int) -> range:
        assert ordinal == 1
        made.asked.append(count)
        return range(1000, 1000 + min(count, made.given))

    def event(*, enable_timing: bool) -> Any:
        assert enable_timing
        return SimpleNamespace(record=lambda _stream: made.step("record"))

    def external(handle: int, device: torch.device) -> Any:
        return SimpleNamespace(cuda_stream=handle, device=device)

    monkeypatch.setattr(contexts, "context_streams", streams)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (made.free, None))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "ExternalStream", external)
    monkeypatch.setattr(torch.cuda, "Event", event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: made.step("synchronize"))
    return made


@pytest.mark.gpu
def test_streams_of_contexts_share_the_memory_and_run_in_order(gpu: str) -> None:
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


_WHERE = r"""
extern "C" __global__ void where(int* seen) {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    if (threadIdx.x == 0) seen[id] = 1;
    for (long long start = clock64(); clock64() - start < 200000;) {}
}
"""


@pytest.mark.gpu
def test_each_context_has_all_multiprocessors(gpu: str) -> None:
    cupy = pytest.importorskip("cupy")
    where = cupy.RawKernel(_WHERE, "where")
    for handle in context_streams(0, 3):
        seen = torch.zeros(1024, dtype=torch.int32, device=gpu)
        torch.cuda.synchronize()
        with cupy.cuda.ExternalStream(handle):
            where((4096,), (1024,), (seen.data_ptr(),))
        torch.cuda.synchronize()
        assert int(seen.sum()) == torch.cuda.get_device_properties(gpu).multi_processor_count
