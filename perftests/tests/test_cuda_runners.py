"""The hold behind which a cold launch waits, and the order of a cold batch. No GPU."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
import torch

from perftests.harness import cuda, cuda_runners
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
        def hold(number: int, _stream: int) -> None:
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
        hold.enqueue(0)
        time.sleep(0.01)
        assert len(device.ended) == turn
        hold.release()
        device.join()
        assert device.ended == [True] * (turn + 1)


def test_a_hold_that_nobody_releases_ends_by_itself() -> None:
    device = Device()
    hold = held(device)  # kept: it owns the word that is looked at
    hold.enqueue(0)
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
        self.kernels: Any = self
        self.now: Any = None

    @contextmanager
    def on(self, stream: Any) -> Iterator[None]:
        self.now = stream
        yield
        self.now = None

    def turn_to(self, stream: Any) -> None:
        assert self.now is not None, "nothing would turn back"
        self.now = stream

    def spin(self, nanoseconds: int, log: int) -> None:
        assert (nanoseconds, log) == (40_000, 0)
        self.said.append("spin")

    def take(self, count: int) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        return [(("start", index), ("stop", index)) for index in range(count)]

    def shown(self, pair: tuple[tuple[str, int], tuple[str, int]]) -> float:
        return (pair[0][1] + 1) * 1e-3

    def log_address(self, index: int) -> int:
        return index

    def clock_hz(self, count: int) -> float:
        return 1e9 * count

    def enqueue(self, _stream: int) -> None:
        self.said.append("hold")

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


def runner_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> ColdRunner:
    def query(event: tuple[str, int]) -> bool:
        name, index = event
        return name == "stop" or index in scene.late

    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(cuda_runners, "_record", lambda event, _: scene.said.append(event[0]))
    monkeypatch.setattr(cuda_runners, "_query", query)
    monkeypatch.setattr(cuda_runners, "_wait", lambda _, stream: scene.said.append(stream.name))
    runner = ColdRunner(cast("CudaDevice", scene), [scene.launch], [cast("Any", Named("one"))])
    scene.said.clear()
    return runner


def batch_of(scene: Scene, monkeypatch: pytest.MonkeyPatch, count: int) -> Any:
    return runner_of(scene, monkeypatch).batch(count)


LAUNCH = ["start", "launch", "stop"]


def test_each_launch_and_the_next_flush_are_enqueued_while_a_flush_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last of a batch has no flush behind it and is held."""
    scene = Scene(persists=False)
    batch = batch_of(scene, monkeypatch, 2)
    last = ["hold", *LAUNCH, "release"]
    assert scene.said == ["wait", "spin", "flush", *LAUNCH, "flush", *last, "wait"]
    assert batch.seconds == [1e-3, 2e-3]
    assert batch.busy_s == 5e-3
    assert batch.sm_clock_hz == 1e9


def holds(scene: Scene) -> list[bool]:
    """Return of each launch whether it was held."""
    before = [word for word in scene.said if word in {"hold", "launch"}]
    return [
        first == "hold"
        for first, word in zip(["", *before], before, strict=False)
        if word == "launch"
    ]


def test_a_host_that_is_late_holds_the_stream_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(persists=False, late=frozenset(range(192)))
    runner = runner_of(scene, monkeypatch)
    assert runner.batch(22).late == 22
    assert holds(scene) == [False] * 9 + [True] * 13, "from the tenth on"
    scene.late = frozenset()
    scene.said.clear()
    for _ in range(20):
        runner.batch(100)
    assert all(holds(scene)), "though the late ones are now fewer than one in ten"


@pytest.mark.parametrize(
    ("count", "late", "held"), [(8, 8, False), (99, 17, False), (99, 18, True)]
)
def test_a_few_at_first_and_one_in_ten_may_be_late_without_a_hold(
    count: int, late: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(persists=False, late=frozenset(range(count - late, count)))
    runner = runner_of(scene, monkeypatch)
    runner.batch(count)
    scene.said.clear()
    scene.late = frozenset()
    runner.batch(5)
    assert holds(scene) == [held] * 4 + [True]


def test_persisting_lines_are_reset_before_or_as_each_flush_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(persists=True)
    batch_of(scene, monkeypatch, 13)
    order = [word for word in scene.said if word in {"reset", "flush", "launch"}]
    first = ["reset", "flush", "launch"]
    assert order == [*first, *["flush", "reset", "launch"] * 12]


class SlowHost(Scene):
    """A host that needs `host_us` for a launch, and a flush of 37 us."""

    def __init__(self, host_us: float) -> None:
        super().__init__(persists=False)
        self.host_us, self.held, self.counted = host_us, False, 0

    def enqueue(self, _stream: int) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    def query(self, event: tuple[str, int]) -> bool:
        if event[0] == "stop":
            return True
        self.counted += 1
        return not self.held and self.host_us > 37.0


@pytest.mark.parametrize(("host_us", "dropped"), [(20.0, 0), (60.0, 18)])
def test_a_slow_host_loses_a_few_launches_and_no_more(
    host_us: float, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SlowHost(host_us)
    runner = runner_of(scene, monkeypatch)
    monkeypatch.setattr(cuda_runners, "_query", scene.query)
    late = [runner.batch(count).late for count in (1, 2, 2, 4, 16, 60, 60, 60)]
    assert sum(late) <= dropped
    assert sum(late[-3:]) == 0
    assert scene.counted == 205


def test_a_launch_that_the_flush_did_not_wait_for_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(persists=False, late=frozenset({1}))
    batch = batch_of(scene, monkeypatch, 3)
    assert (batch.late, batch.seconds) == (1, [1e-3, 3e-3])
    assert "spin" in scene.said


def test_a_launch_that_raises_leaves_no_stream_held(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(persists=False, late=frozenset(range(4)))
    runner = runner_of(scene, monkeypatch)
    runner.batch(4)
    scene.said.clear()

    def broken() -> None:
        raise RuntimeError("no such kernel")

    runner._launches = [broken]
    with pytest.raises(RuntimeError, match="no such kernel"):
        runner.batch(1)
    assert scene.said[-3:] == ["hold", "start", "release"]


def test_launches_take_turns_by_launch_and_streams_every_eleven(
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
    runner.batch(24)
    runner.batch(2)
    assert [name for name, _ in seen] == ["a", "b"] * 13
    shares = [("s0", 11), ("s1", 11), ("s2", 2), ("s0", 2)]
    assert [stream for _, stream in seen] == [name for name, count in shares for _ in range(count)]


@pytest.mark.parametrize("places", [1, 2, 4, 8, 16, 32])
def test_every_place_comes_to_every_stream(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, seen = turns(monkeypatch, places, cuda._STREAMS)
    seen.clear()
    for _ in range(places):
        runner.batch(cuda_runners._TURN * cuda._STREAMS)
    met = Counter(seen)
    assert len(met) == places * cuda._STREAMS
    assert set(met.values()) == {cuda_runners._TURN}, "as often"


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


@pytest.mark.parametrize(
    ("places", "streams", "rounds"), [(32, 63, 2), (16, 31, 2), (8, 15, 2), (8, 1, 1)]
)
def test_rounds_over_the_places_meet_all_streams(
    places: int, streams: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, seen = turns(monkeypatch, places, streams)
    assert runner.rounds == rounds
    seen.clear()
    for _ in range(runner.rounds):
        runner.once()
    assert len({stream for _, stream in seen}) == streams
    assert [place for place, _ in seen] == list(range(places)) * rounds
