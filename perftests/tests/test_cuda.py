"""What a GPU decides without one: how many places and streams, and which stream is whose."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager, nullcontext
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, call

import pytest
import torch

from perftests.harness import cuda, order
from perftests.harness.cuda import CudaDevice
from perftests.harness.errors import ChainBrokenError, Link, UnfitError

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
GIB = 1 << 30
OWN, OTHER, YOURS, DEFAULT = "own", "other", "yours", "default"
TURNS = ("t0", "t1", "t2")


@pytest.fixture
def device() -> Any:
    """A device that was not opened."""
    made: Any = CudaDevice.__new__(CudaDevice)
    made.device = torch.device("cpu")
    return made


@pytest.fixture
def current(device: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Torch's stack of current streams, over the default one."""
    stack = [DEFAULT]

    @contextmanager
    def entered(stream: str) -> Iterator[None]:
        stack.append(stream)
        try:
            yield
        finally:
            stack.pop()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device=None: stack[-1])
    monkeypatch.setattr(torch.cuda, "default_stream", lambda _device=None: DEFAULT)
    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "device", lambda _index: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device=None: None)
    device.cupy = SimpleNamespace(cuda=SimpleNamespace(Device=lambda _index: nullcontext()))
    device._own, device._other, device._turns = OWN, OTHER, TURNS
    monkeypatch.setattr(CudaDevice, "_cupy_stream", lambda _self, _stream: nullcontext())
    return stack


def test_streams_take_turns_unless_the_caller_launches_on_one_of_their_own(
    device: Any, current: list[str]
) -> None:
    with device.stream() as chosen:
        assert (chosen, current[-1], device.streams()) == (OWN, OWN, TURNS)
        with device.stream() as nested:
            assert (nested, device.streams()) == (OWN, TURNS)
    current.append(YOURS)
    with device.stream() as chosen:
        assert (chosen, current[-1], device.streams()) == (YOURS, YOURS, (YOURS,))


def test_a_launch_that_raises_leaves_the_callers_stream_current(
    device: Any, current: list[str]
) -> None:
    def fails() -> None:
        with device.stream(), device.on("t1"):
            raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        fails()
    assert current == [DEFAULT]


@pytest.mark.parametrize("blind", [None, "streams wait for each other"])
@pytest.mark.parametrize(
    ("callers", "stream", "where", "asked"),
    [
        (DEFAULT, None, OTHER, (OTHER, [OWN])),
        (DEFAULT, "t2", "t2", (OTHER, [OWN])),
        (YOURS, None, YOURS, (YOURS, [OWN, OTHER])),
    ],
)
def test_the_order_is_looked_at_on_another_stream_than_that_of_the_first_call(
    callers: str, stream: Any, where: str, asked: Any, blind: Any, device: Any, current: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    seen = order.Look(torch.ones(3))
    look, why_blind = Mock(return_value=seen), Mock(return_value=blind)
    monkeypatch.setattr(order, "look", look)
    monkeypatch.setattr(order, "why_blind", why_blind)
    current.append(callers)
    buffers: Any = object()
    with device.stream():
        found = [device.ordered(int, buffers, stream) for _ in range(2)]
    assert look.mock_calls == 2 * [call(device, int, buffers, where)]
    assert why_blind.mock_calls == [call(device, *asked)], "once a device"
    assert [one.unseen for one in found] == [blind, blind]
    assert found[0].output is seen.output


def test_an_error_that_surfaces_while_waiting_has_taken_the_device_with_it(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_device: object) -> None:
        raise RuntimeError("an illegal memory access was encountered\nand more")

    monkeypatch.setattr(torch.cuda, "synchronize", lost)
    with pytest.raises(ChainBrokenError, match=r"illegal memory access was encountered$") as broken:
        device.synchronize()
    assert (broken.value.link, broken.value.sticky) == (Link.DEVICE, True)


def test_only_declared_allocations_keep_a_cold_runner_to_one_stream(
    device: Any, current: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        cuda, "ColdRunner", lambda _device, _launches, streams: given.append(streams)
    )
    launches = [int] * 8
    with device.stream():
        device.runner("cold", launches)
        device.runner("cold", launches, streams=False)
    assert given == [TURNS, (OWN,)]


@pytest.mark.parametrize(("places", "streams"), [(1, 1), (2, 3), (8, 15), (16, 31), (32, 63)])
def test_no_more_streams_are_timed_than_fresh_inputs_meet(
    places: int, streams: int, device: Any, current: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        cuda, "ColdRunner", lambda _device, _launches, streams: given.append(streams)
    )
    device._turns = tuple(f"t{index}" for index in range(cuda._STREAMS))
    with device.stream():
        device.runner("cold", [int] * places)
    assert given == [device._turns[:streams]]


class CupyStream:
    """A stream as CuPy sees it, and the stack of those that are current."""

    stack: list[int]

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    @classmethod
    def from_external(cls, given: Any) -> CupyStream:
        return cls(given.__cuda_stream__()[1])

    def __enter__(self) -> None:
        CupyStream.stack.append(self.ptr)

    def __exit__(self, *_: object) -> None:
        CupyStream.stack.pop()

    def use(self) -> None:
        CupyStream.stack[-1] = self.ptr


def test_a_turn_is_on_one_stream_for_torch_and_cupy_and_ends_with_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torchs: list[Any] = ["before"]

    @contextmanager
    def entered(stream: Any) -> Iterator[None]:
        torchs.append(stream)
        try:
            yield
        finally:
            torchs.pop()

    def turned(stream: Any) -> None:
        torchs[-1] = stream

    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "set_stream", turned)
    monkeypatch.setattr(CupyStream, "stack", [0], raising=False)
    made: Any = CudaDevice.__new__(CudaDevice)
    made._seen_by_cupy, made.cupy = {}, SimpleNamespace(cuda=SimpleNamespace(Stream=CupyStream))
    one, two = (SimpleNamespace(cuda_stream=handle) for handle in (11, 22))

    def fails() -> None:
        with made.on(one):
            assert (torchs[-1], CupyStream.stack[-1]) == (one, 11)
            for stream in (two, one, two):
                made.turn_to(stream)
                assert (torchs[-1], CupyStream.stack[-1]) == (stream, stream.cuda_stream)
            raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        fails()
    assert (torchs, CupyStream.stack) == (["before"], [0])
    assert {handle: stream.ptr for handle, stream in made._seen_by_cupy.items()} == {11: 11, 22: 22}


class Calls:
    """The runtime's calls that a device makes, and the limit it answers with."""

    class CUDARuntimeError(RuntimeError):
        """What CuPy raises."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.said: list[tuple[Any, ...]] = []

    def deviceGetLimit(self, which: int) -> int:
        assert which == 6, "cudaLimitPersistingL2CacheSize"
        if self.limit is None:
            raise Calls.CUDARuntimeError
        return self.limit

    def memsetAsync(self, *given: Any) -> None:
        self.said.append(given)


@pytest.mark.parametrize(("limit", "may"), [(0, False), (1, True), (11 << 20, True), (None, False)])
def test_lines_may_persist_where_part_of_the_cache_is_set_aside(
    limit: int | None, may: bool, device: Any
) -> None:
    device.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=Calls(limit)))
    assert device.may_persist() is may


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Everything that a device opens, with an L2 of 50 MiB on each of two GPUs."""
    calls, usual = Calls(0), torch.ones

    def ones(size: int, *, dtype: torch.dtype, device: object) -> torch.Tensor:
        return usual(size, dtype=dtype)

    class Entered(SimpleNamespace):
        def __enter__(self) -> None:
            """Nothing."""

        def __exit__(self, *_: object) -> None:
            """Nothing."""

    handles = count(1)

    def stream(*, non_blocking: bool) -> Any:
        assert non_blocking, "the default stream would be waited for"
        return SimpleNamespace(ptr=next(handles))

    cupy = SimpleNamespace(
        cuda=SimpleNamespace(
            runtime=calls,
            Device=lambda _index: Entered(attributes={"ClockRate": 1_980_000}),
            Stream=stream,
        )
    )
    fakes = {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "get_device_properties": lambda _index: SimpleNamespace(
            L2_cache_size=50 * MIB + 1, total_memory=128 * GIB
        ),
        "device": lambda _index: nullcontext(),
        "ExternalStream": lambda handle, _device: SimpleNamespace(cuda_stream=handle),
        "synchronize": lambda _device: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(torch, "ones", ones)
    monkeypatch.setattr(cuda, "import_cupy", lambda: cupy)
    monkeypatch.setattr(cuda, "DeviceKernels", lambda: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: None)
    monkeypatch.setattr(cuda, "streams_of_contexts", lambda _device, _most: ())
    return calls


@pytest.mark.usefixtures("opened")
def test_each_device_has_streams_that_are_nobody_elses() -> None:
    """Torch has thirty-two, which it gives to everyone in turn."""
    devices = [CudaDevice(0) for _ in range(3)]
    handles = [s.cuda_stream for made in devices for s in (made._own, made._other, *made._turns)]
    assert len(set(handles)) == 3 * (2 + cuda._STREAMS)


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize("several", [True, False])
def test_launches_take_turns_in_several_contexts_where_there_are_some(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, int]] = []
    made = tuple(SimpleNamespace(cuda_stream=1000 + index) for index in range(21))

    def streams(device: Any, most: int) -> Any:
        asked.append((device, most))
        return made if several else ()

    monkeypatch.setattr(cuda, "streams_of_contexts", streams)
    device = CudaDevice(1)
    assert asked == [], "only what times has them made"
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: device._own)
    taken = device.streams()
    assert asked == [(device, cuda._STREAMS)]
    assert taken == made if several else len(taken) == cuda._STREAMS
    assert device.has_one_context is not several
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: "the caller's")
    assert not device.has_one_context, "the caller wants it so"


def test_a_flush_writes_twice_the_cache_and_what_precedes_the_reset(opened: Calls) -> None:
    made = CudaDevice(1)
    stream: Any = SimpleNamespace(cuda_stream=42)
    made.flush(stream)
    ((where, value, size, handle),) = opened.said
    assert (value, size, handle) == (0, 126 * MIB, 42)
    assert size >= 2.5 * made.cache_bytes
    assert where == made._flush_buffer.data_ptr()
    assert made._flush_buffer.numel() == size
    assert made.highest_sm_clock_hz == 1.98e9


def test_a_gpu_that_is_not_there_is_unfit(opened: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnfitError, match="cannot measure on cuda:2: torch sees 2 GPUs"):
        CudaDevice(2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UnfitError, match="torch sees none; use --bandwatch-device cpu"):
        CudaDevice(0)


@pytest.mark.parametrize("persists", [True, False])
def test_the_time_of_a_flush_is_the_median_of_several_beside_what_launches_have_beside_it(
    persists: bool, opened: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reset belongs to it where lines may persist, as soon as the flush has begun."""
    said: list[str] = []
    took = iter([9.0, 0.04, 0.05, 0.04, 0.04, 0.03, 0.05, 0.04, 0.04])

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            self.asked = 0

        def record(self, _stream: object) -> None:
            said.append("event")

        def query(self) -> bool:
            self.asked += 1
            return self.asked > 1

        def elapsed_time(self, other: Event) -> float:
            return next(took)

    made = CudaDevice(0)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda _device: SimpleNamespace(cuda_stream=1)
    )
    monkeypatch.setattr(made, "may_persist", lambda: persists)
    monkeypatch.setattr(made, "flush", lambda _stream: said.append("flush"))
    monkeypatch.setattr(made, "reset_persisting", lambda: said.append("reset"))
    made.kernels = SimpleNamespace(spin=lambda _ns: said.append("spin"))  # type: ignore[assignment]
    assert made.flush_s == pytest.approx(4e-5)
    assert said == 9 * ["spin", "event", "flush", "event", *(["reset"] if persists else [])]


def test_a_profiler_sees_the_launch_alone_between_two_waits(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: said.append("wait"))
    device.runtime = SimpleNamespace(
        profilerStart=lambda: said.append("start"), profilerStop=lambda: said.append("stop")
    )
    device.profiled(lambda: said.append("launch"))
    assert said == ["wait", "start", "launch", "wait", "stop"]
