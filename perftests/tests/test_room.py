"""What a device has room for: places in its memory, contexts, the buffers themselves."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from perftests.harness import buffers, cuda
from perftests.harness.arena import Arena
from perftests.harness.chain import measure
from perftests.harness.cpu import CpuDevice
from perftests.harness.cuda import CudaDevice
from perftests.harness.errors import Link
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests.workloads import relu_workload

CPU = torch.device("cpu")
MIB = 1 << 20
GIB = 1 << 30


def session() -> Session:
    return Session(Settings(max_seconds=1.0, max_samples=9, lock_seconds=30))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device of 128 GiB with an L2 of 50 MiB, whose arena takes no memory of this machine."""

    class Sized(Arena):
        def __init__(self, size: int, device: torch.device, *, at_most: int) -> None:
            super().__init__(0, device)
            self.size = min(size, at_most)

    monkeypatch.setattr(cuda, "Arena", Sized)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (100 * GIB, 128 * GIB))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    made: Any = CudaDevice.__new__(CudaDevice)
    made.device = torch.device("cpu")
    made.properties = SimpleNamespace(total_memory=128 * GIB)
    made.cache_bytes = 50 * MIB
    return made


@pytest.mark.parametrize(
    ("mode", "set_bytes", "sets"),
    [
        ("cold", 1, 32),
        ("cold", GIB // 4, 32),
        ("cold", GIB // 4 + 1, 16),
        ("cold", GIB // 2, 16),
        ("cold", 3 * GIB // 4, 8),
        ("cold", GIB, 8),
        ("cold", 3 * GIB, 2),
        ("cold", 100 * GIB, 1),
        ("hot", MIB, 1),
        ("rotated", 10 * MIB, 27),
        ("rotated", GIB, 2),
    ],
)
def test_places_fit_into_a_sixteenth_of_the_memory(
    mode: str, set_bytes: int, sets: int, device: Any
) -> None:
    assert device.sets_needed(mode, set_bytes) == sets
    assert device.arena.size == 16 * GIB, "room for a case's and for the copies' beside it"


def test_three_quarters_of_what_is_free_are_left_to_others(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (8 * GIB, 128 * GIB))
    assert device.arena.size == 2 * GIB
    assert device.sets_needed("cold", GIB // 4) == 4


class Held:
    """What keeps memory until Python looks for objects that only hold each other."""

    itself: Held
    memory: torch.Tensor


def test_what_the_process_no_longer_uses_counts_as_free(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks in torch's cache, and those of objects that hold one another."""
    held = Held()
    held.itself, gone, cached = held, weakref.ref(held), [60 * GIB]
    del held

    def free(_device: torch.device) -> tuple[int, int]:
        left = 100 * GIB - sum(cached) - (0 if gone() is None else 20 * GIB)
        return left, 128 * GIB

    monkeypatch.setattr(torch.cuda, "mem_get_info", free)
    monkeypatch.setattr(torch.cuda, "empty_cache", cached.clear)
    assert device.arena.size == 16 * GIB


@pytest.mark.gpu
def test_memory_that_tests_before_left_is_had_for_places(gpu: str) -> None:
    most = torch.cuda.get_device_properties(0).total_memory * 3 // 5
    held = Held()
    held.itself, held.memory = held, torch.empty(most, dtype=torch.uint8, device=gpu)
    del held
    device: Any = session().bench(torch.device(gpu)).device
    with device.stream():
        assert len(device.streams()) == 63
    assert device.sets_needed("cold", MIB) == 32
    assert device.arena.missing == 0


def test_a_device_without_an_arena_has_one_place(device: Any) -> None:
    device.arena = Arena(0, device.device)
    assert device.sets_needed("cold", 1) == 1
    assert device.sets_needed("rotated", 10 * MIB) == 27


def full(*_: object, **__: object) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB.\nAnd more.")


def test_a_device_without_room_for_more_places_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a smaller case it has room for a few all the same."""
    here = session()
    here.bench(CPU).device.arena.missing = 8_700_000_000
    monkeypatch.setattr(CpuDevice, "sets_needed", lambda _device, _mode, _bytes: 2)
    few = {warning["code"] for warning in measure(relu_workload(), here).result["warnings"]}
    assert "one_place" not in few
    monkeypatch.setattr(CpuDevice, "sets_needed", lambda _device, _mode, _bytes: 1)
    told = {w["code"]: w["message"] for w in measure(relu_workload(), here).result["warnings"]}
    assert "no 8.70 GB left" in told["one_place"]
    assert "one_context" not in told
    hot = measure(relu_workload(), here, mode="hot").result["warnings"]
    assert "one_place" not in {warning["code"] for warning in hot}


def test_a_device_without_further_contexts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    here = session()
    monkeypatch.setattr(here.bench(CPU).device, "has_one_context", True)
    told = {w["code"]: w["message"] for w in measure(relu_workload(), here).result["warnings"]}
    assert "CUDA 12.5 or later" in told["one_context"]
    hot = measure(relu_workload(), here, mode="hot").result["warnings"]
    assert "one_context" not in {warning["code"] for warning in hot}


def test_buffers_that_do_not_fit_are_a_broken_link_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = session()
    here.bench(CPU)
    monkeypatch.setattr(buffers, "aligned_rows", full)
    outcome = measure(relu_workload(), here)
    assert outcome.broken is not None
    assert (outcome.broken.link, outcome.broken.sticky) == (Link.DEVICE, False)
    assert outcome.result["status"] == "error"
    assert str(outcome.broken) == (
        "device error: the buffers do not fit: OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 8.00 GiB.; end what else uses the device, or measure a smaller case"
    )
