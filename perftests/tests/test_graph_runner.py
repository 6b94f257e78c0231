"""A graph's launches and their division, event pairs and the clock beside them. No GPU."""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch

from perftests.harness import cuda_runners, energy
from perftests.harness.cuda_runners import EventPairs, GraphRunner
from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.sampling import LARGEST_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.cuda import CudaDevice

CPU = torch.device("cpu")


class Graph:
    """A CUDA graph that counts what is captured and replayed."""

    def __init__(self) -> None:
        self.open = False
        self.replays = 0

    def capture_begin(self, *, capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        self.open = True

    def capture_end(self) -> None:
        self.open = False

    def replay(self) -> None:
        assert not self.open
        self.replays += 1


class Scene:
    """A device whose launches take the host `host_s`, with pairs that show what is set here."""

    def __init__(self, host_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.host_s = 0.0, host_s
        self.late: set[int] = set()
        self.spins: list[tuple[int, ...]] = []
        self.launched: Counter[int] = Counter()
        self.graph = Graph()
        self.captured = 0
        self.device, self.pairs, self.kernels = CPU, self, self
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: self.graph)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: "stream")
        monkeypatch.setattr(cuda_runners, "perf_counter", lambda: self.now)
        monkeypatch.setattr(cuda_runners, "_record", lambda _event, _stream: None)
        monkeypatch.setattr(cuda_runners, "_query", lambda event: event in self.late)

    def launches(self, sets: int) -> list[Callable[[], None]]:
        def at(place: int) -> Callable[[], None]:
            def launch() -> None:
                self.now += self.host_s
                self.launched[place] += 1
                self.captured += self.graph.open

            return launch

        return [at(place) for place in range(sets)]

    def runner(self, mode: str, sets: int) -> GraphRunner:
        return GraphRunner(cast("CudaDevice", self), mode, self.launches(sets))

    def synchronize(self) -> None:
        assert not self.graph.open, "a capture cannot wait for the device"

    def spin(self, *given: int) -> None:
        self.spins.append(given)

    def take(self, count: int) -> list[tuple[int, str]]:
        return [(index, "stop") for index in range(count)]

    def log_address(self, index: int) -> int:
        return 16 * index

    def seconds(self, count: int) -> list[float]:
        return [1e-3 * (index + 1) for index in range(count)]

    def clock_hz(self, count: int) -> float:
        return 1e9 * count


@pytest.mark.parametrize(
    ("host_s", "sets", "nodes"),
    [(1e-4, 1, 20), (1e-4, 3, 18), (1e-4, 50, 50), (1e-5, 1, 50), (1e-5, 7, 49), (0.0, 1, 500)],
)
def test_a_graph_goes_through_all_sets_for_half_a_millisecond_or_twenty_launches(
    host_s: float, sets: int, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(host_s, monkeypatch)
    runner = scene.runner("rotated", sets)
    assert runner.nodes == scene.captured == pytest.approx(nodes, abs=sets)
    assert runner.nodes % sets == 0
    assert set(scene.launched.values()) == {runner.nodes // sets + 2}
    assert runner.timer == "cuda_event_graph_rotated"


def test_a_measurement_is_divided_by_its_launches_and_late_ones_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(1e-4, monkeypatch)
    runner = scene.runner("hot", 1)
    scene.late = {1}
    batch = runner.batch(4)
    assert runner.nodes == 20
    assert batch.seconds == [1e-3 / 20, 3e-3 / 20, 4e-3 / 20]
    assert (batch.late, batch.sm_clock_hz) == (1, 4e9)
    assert batch.busy_s == pytest.approx(10e-3)
    assert scene.graph.replays == 1 + 4
    assert [spin[1:] for spin in scene.spins] == [(), (0,), (16,), (32,), (48,)]


def test_spins_grow_while_the_host_comes_too_late_up_to_a_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(1e-4, monkeypatch)
    runner = scene.runner("hot", 1)

    def spun() -> int:
        runner.batch(20)
        return scene.spins[-1][0]

    usual = spun()
    scene.late = {0}
    assert [spun(), spun()] == [usual, usual], "one in twenty is no reason"
    scene.late = {0, 5}
    assert spun() == usual
    assert [spun(), spun()] == [2 * usual, 4 * usual]
    for _ in range(10):
        longest = spun()
    assert longest == 400_000


def test_what_cannot_be_captured_is_refused_and_ends_the_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(1e-4, monkeypatch)

    def waits() -> None:
        if scene.graph.open:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(ChainBrokenError, match=r"not permitted .* or measure cold") as broken:
        GraphRunner(cast("CudaDevice", scene), "hot", [waits])
    assert broken.value.link is Link.LAUNCH
    assert not scene.graph.open


def test_no_launch_follows_a_graphs_loop_and_fresh_inputs_meet_the_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(1e-4, monkeypatch)
    runner = scene.runner("rotated", 3)
    before, replays = scene.launched.copy(), scene.graph.replays
    runner.rest(1)
    assert (scene.launched, scene.graph.replays) == (before, replays)
    runner.once()
    assert scene.graph.replays == replays + 1


class Timed:
    """An event of CUDA with the milliseconds at which it fired as its handle."""

    made = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.cuda_event = Timed.made
        Timed.made += 1


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> EventPairs:
    monkeypatch.setattr(cuda_runners, "_Event", Timed)
    monkeypatch.setattr(Timed, "made", 0)

    def pinned(size: int) -> Any:
        memory = (ctypes.c_int64 * (size // 8))(*[-1] * (size // 8))
        memory.ptr = ctypes.addressof(memory)  # type: ignore[attr-defined]
        return memory

    clock = SimpleNamespace(elapsed_ms=lambda _start, stop: float(stop))
    monkeypatch.setitem(sys.modules, "perftests.harness.event_clock", cast("Any", clock))
    cupy = SimpleNamespace(cuda=SimpleNamespace(alloc_pinned_memory=pinned))
    return EventPairs(cast("Any", SimpleNamespace(cupy=cupy)))


def test_pairs_are_made_once_and_tell_seconds(pairs: EventPairs) -> None:
    first = pairs.take(2)
    assert pairs.take(3)[:2] == first
    assert pairs.take(1) == first[:1]
    assert pairs.seconds(2) == [1e-3, 3e-3]
    assert Timed.made == 6


def test_the_clock_is_cycles_over_time_pooled_over_a_batch(pairs: EventPairs) -> None:
    """2000 cycles in 1000 ns and 6000 in 4000 are 1.6 GHz, not the mean of 2 and 1.5."""
    assert pairs.clock_hz(2) is None
    log = pairs._log.reshape(-1, 2)
    log[:3] = (2000, 1000), (6000, 4000), (9, 1)
    assert pairs.clock_hz(2) == pytest.approx(1.6e9)
    assert pairs.log_address(3) - pairs.log_address(2) == 16
    assert pairs.log_address(0) == log.ctypes.data
    assert len(log) == LARGEST_BATCH


class Marks:
    """An event for energy: each is 1 ms after the one before."""

    made = 0
    waited: list[int]

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.number = Marks.made
        Marks.made += 1

    def record(self, _stream: object) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        Marks.waited.append(self.number)

    def elapsed_time(self, other: Marks) -> float:
        return float(other.number - self.number)


def test_the_rate_of_a_load_is_that_between_its_first_and_last_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """10 launches a graph of 10 us each: 40 graphs a slice of 4 ms; slices 1 ms apart here."""
    graphs: list[int] = []

    class Runner:
        nodes = 10

        def __init__(self, _device: object, mode: str, _launches: object) -> None:
            assert mode == "hot"

        def once(self) -> None:
            graphs.append(1)

    monkeypatch.setattr(energy, "GraphRunner", Runner)
    monkeypatch.setattr(energy, "_elapsed", Marks.elapsed_time)
    monkeypatch.setattr(torch.cuda, "Event", Marks)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: "stream")
    monkeypatch.setattr(Marks, "waited", [], raising=False)
    device: Any = SimpleNamespace(device=CPU, synchronize=lambda: None)
    load = energy._Load(device, [lambda: None], 1e-5)
    for _ in range(11):
        load.work()
    assert len(graphs) == 11 * 40
    assert Marks.waited == [0, 1, 2], "eight slices stay ahead of the device"
    assert load.launches_per_s() == pytest.approx(10 * 400 / 10e-3)
