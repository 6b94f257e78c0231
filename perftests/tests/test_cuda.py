"""What a GPU decides without one: how many places and streams, and which stream is whose."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import cuda
from perftests.harness.arena import Arena
from perftests.harness.cuda import CudaDevice
from perftests.harness.errors import ChainBrokenError, Link

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
GIB = 1 << 30
OWN, TURNS, YOURS, DEFAULT = "own", ("t0", "t1", "t2"), "yours", "default"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device of 128 GiB with an L2 of 50 MiB, whose arena takes no memory of this machine."""

    class Sized(Arena):
        def __init__(self, size: int, device: torch.device) -> None:
            super().__init__(0, device)
            self.size = size

    monkeypatch.setattr(cuda, "Arena", Sized)
    made: Any = CudaDevice.__new__(CudaDevice)
    made.device = torch.device("cpu")
    made.properties = SimpleNamespace(total_memory=128 * GIB)
    made.cache_bytes = 50 * MIB
    return made


@pytest.mark.parametrize(
    ("mode", "set_bytes", "sets"),
    [
        ("cold", 1, 16),
        ("cold", 8 * MIB, 16),
        ("cold", 8 * MIB + 1, 8),
        ("cold", GIB // 2, 8),
        ("cold", GIB, 4),
        ("cold", 3 * GIB, 1),
        ("cold", 100 * GIB, 1),
        ("hot", MIB, 1),
        ("rotated", 10 * MIB, 27),
        ("rotated", GIB, 2),
    ],
)
def test_places_fit_into_a_thirty_second_of_the_memory(
    mode: str, set_bytes: int, sets: int, device: Any
) -> None:
    assert device.sets_needed(mode, set_bytes) == sets
    assert device.arena.size == 8 * GIB, "room for a case's and for the copies' beside it"


def test_a_device_without_an_arena_has_one_place(device: Any) -> None:
    device.arena = Arena(0, device.device)
    assert device.sets_needed("cold", 1) == 1
    assert device.sets_needed("rotated", 10 * MIB) == 27


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
    device._own, device._turns = OWN, TURNS
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


def test_the_order_is_looked_at_on_another_stream_than_that_of_the_first_call(
    device: Any, current: list[str]
) -> None:
    said: list[tuple[str, str]] = []

    class Output:
        def poison(self, _pattern: int) -> None:
            said.append(("poison", current[-1]))

    buffers = SimpleNamespace(output=Output(), output_tensor=torch.ones(3))
    device.kernels = SimpleNamespace(spin=lambda _ns: said.append(("hold", current[-1])))
    with device.stream():
        seen = device.ordered(lambda: said.append(("launch", current[-1])), buffers)
    assert said == [("hold", "t2"), ("poison", "t2"), ("launch", "t2")]
    assert torch.equal(seen, torch.ones(3))
    assert seen.data_ptr() != buffers.output_tensor.data_ptr()


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
    with device.stream():
        device.runner("cold", [])
        device.runner("cold", [], streams=False)
    assert given == [TURNS, (OWN,)]
