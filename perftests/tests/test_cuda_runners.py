"""The hold behind which a cold launch waits, and the order of a cold batch. No GPU."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
import torch

from perftests.harness import cuda_runners
from perftests.harness.cuda_runners import ColdRunner, Hold
from perftests.tests import fake_cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftests.harness.cuda import CudaDevice


class Device:
    """Holds as the kernel does, in a thread; notes how each hold ended."""

    def __init__(self) -> None:
        self.ended: list[bool] = []
        self.threads: list[threading.Thread] = []
        self.cupy = self.cuda = self.kernels = self

    def alloc_pinned_memory(self, size: int) -> Any:
        memory = (ctypes.c_int32 * (size // 4))()
        memory.ptr = ctypes.addressof(memory)  # type: ignore[attr-defined]
        return memory

    def holder(self, word: int, longest_ns: int) -> Any:
        def hold(number: int, _log: int, _stream: int) -> None:
            thread = threading.Thread(target=self._hold, args=(word, number, longest_ns * 1e-9))
            self.threads.append(thread)
            thread.start()

        return hold

    def _hold(self, word: int, number: int, longest_s: float) -> None:
        memory = ctypes.c_int32.from_address(word)
        limit = time.monotonic() + longest_s
        while memory.value < number and time.monotonic() < limit:
            time.sleep(1e-4)
        self.ended.append(memory.value >= number)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


def held(device: Device) -> Hold:
    return Hold(cast("CudaDevice", device))


def test_a_hold_lasts_until_the_host_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_runners, "_LONGEST_HOLD_NS", 10_000_000_000)
    device = Device()
    hold = held(device)
    for turn in range(3):
        hold.enqueue(0, 0)
        time.sleep(0.01)
        assert len(device.ended) == turn
        hold.release()
        device.join()
        assert device.ended == [True] * (turn + 1)


def test_a_hold_that_nobody_releases_ends_by_itself() -> None:
    device = Device()
    hold = held(device)  # kept: it owns the word that is looked at
    hold.enqueue(0, 0)
    device.join()
    assert device.ended == [False]


class Named(NamedTuple):
    """A stream, told from others by its name."""

    name: str
    cuda_stream: int = 7


class Scene:
    """A device that writes down what a batch asks of it, and whose events end as `late` says."""

    def __init__(self, *, persists: bool, late: frozenset[int] = frozenset()) -> None:
        self.said: list[str] = []
        self.persists, self.late = persists, late
        self.device, self.flush_s = torch.device("cpu"), 1e-3
        self.pairs: Any = self
        self.hold: Any = self
        self.now: Any = None

    @contextmanager
    def on(self, stream: Any) -> Iterator[None]:
        self.now = stream
        yield
        self.now = None

    def take(self, count: int) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        return [(("start", index), ("stop", index)) for index in range(count)]

    def seconds(self, count: int) -> list[float]:
        return [(index + 1) * 1e-3 for index in range(count)]

    def log_address(self, index: int) -> int:
        return index

    def clock_hz(self, count: int) -> float:
        return 1e9 * count

    def enqueue(self, log: int, _stream: int) -> None:
        self.said.append(f"hold {log}")

    def release(self) -> None:
        self.said.append("release")

    def may_persist(self) -> bool:
        return self.persists

    def synchronize(self) -> None:
        self.said.append("wait")

    def flush(self, _stream: object) -> None:
        self.said.append("flush")

    def reset_persisting(self) -> None:
        self.said.append("reset")

    def launch(self) -> None:
        self.said.append("launch")


def batch_of(scene: Scene, monkeypatch: pytest.MonkeyPatch, count: int) -> Any:
    def query(event: tuple[str, int]) -> bool:
        name, index = event
        return name == "stop" or index in scene.late

    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(cuda_runners, "_record", lambda event, _: scene.said.append(event[0]))
    monkeypatch.setattr(cuda_runners, "_query", query)
    runner = ColdRunner(cast("CudaDevice", scene), [scene.launch], [cast("Any", Named("one"))])
    scene.said.clear()
    return runner.batch(count)


def test_each_launch_is_flushed_for_and_released_once_all_of_it_is_enqueued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(persists=False)
    batch = batch_of(scene, monkeypatch, 2)
    turn = ["start", "launch", "stop"]
    first = ["hold 0", *turn, "flush", "release"]
    assert scene.said == ["wait", "flush", *first, "hold 1", *turn, "release", "wait"]
    assert batch.seconds == [1e-3, 2e-3]
    assert batch.busy_s == 5e-3
    assert batch.sm_clock_hz == 2e9


def test_persisting_lines_are_reset_before_or_as_each_flush_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(persists=True)
    batch_of(scene, monkeypatch, 3)
    order = [word for word in scene.said if word in {"reset", "flush", "launch", "release"}]
    begun = ["launch", "flush", "release", "reset"]
    assert order == ["reset", "flush", *begun, *begun, "launch", "release"]


def test_a_launch_that_its_hold_did_not_wait_for_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(persists=False, late=frozenset({1}))
    batch = batch_of(scene, monkeypatch, 3)
    assert (batch.late, batch.seconds) == (1, [1e-3, 3e-3])


def test_a_launch_that_raises_leaves_no_stream_held(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, calls = Scene(persists=False), []

    def broken() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("no such kernel")

    monkeypatch.setattr(scene, "launch", broken)
    with pytest.raises(RuntimeError, match="no such kernel"):
        batch_of(scene, monkeypatch, 1)
    assert scene.said[-1] == "release"


def test_launches_take_turns_by_launch_and_streams_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch_of(scene := Scene(persists=False), monkeypatch, 1)
    streams = [cast("Any", Named(name)) for name in ("s0", "s1", "s2")]
    seen: list[tuple[str, Any]] = []

    def named(name: str) -> Callable[[], None]:
        return lambda: seen.append((name, scene.now.name))

    runner = ColdRunner(cast("CudaDevice", scene), [named("a"), named("b")], streams)
    assert seen == [("a", "s0"), ("b", "s1"), ("a", "s2")], "each is made known first"
    seen.clear()
    for _ in range(4):
        runner.batch(3)
    assert [name for name, _ in seen] == ["a", "b"] * 6
    assert [stream for _, stream in seen] == [s for s in ("s0", "s1", "s2", "s0") for _ in range(3)]


def turns(
    monkeypatch: pytest.MonkeyPatch, places: int, streams: int
) -> tuple[ColdRunner, list[tuple[int, str]]]:
    """Return a runner and the list of the places and streams that its launches go to."""
    batch_of(scene := Scene(persists=False), monkeypatch, 1)
    seen: list[tuple[int, str]] = []

    def at(place: int) -> Callable[[], None]:
        return lambda: seen.append((place, scene.now.name))

    named = [cast("Any", Named(f"s{index}")) for index in range(streams)]
    return ColdRunner(cast("CudaDevice", scene), [at(p) for p in range(places)], named), seen


@pytest.mark.parametrize(("places", "streams"), [(16, 8), (8, 8), (3, 8), (1, 8), (4, 1)])
def test_each_place_and_each_stream_is_met_before_anything_is_timed(
    places: int, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, seen = turns(monkeypatch, places, streams)
    assert {place for place, _ in seen} == set(range(places))
    assert {stream for _, stream in seen} == {f"s{index}" for index in range(streams)}


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_only_the_places_that_a_short_loop_has_not_come_to_are_launched_on_after_it(
    before: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, seen = turns(monkeypatch, 4, 3)
    if before:
        runner.batch(before)
    seen.clear()
    runner.batch(count)
    timed = {place for place, _ in seen}
    seen.clear()
    runner.rest(count)
    assert sorted(place for place, _ in seen) == sorted(set(range(4)) - timed)


def test_fresh_inputs_meet_every_stream_that_was_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that writes nothing on some stream leaves what another stream's launch wrote there."""
    runner, seen = turns(monkeypatch, 16, 8)
    runner.batch(5)
    seen.clear()
    runner.once()
    assert [place for place, _ in seen] == list(range(16))
    assert {stream for _, stream in seen} == {f"s{index}" for index in range(8)}
