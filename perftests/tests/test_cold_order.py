"""On which stream and with which event a cold batch asks for what. No GPU."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, cast

from perftests.harness import cuda_runners
from perftests.harness.cuda_runners import ColdRunner
from perftests.tests import fake_cuda
from perftests.tests.test_cuda_runners import Named, Scene

if TYPE_CHECKING:
    import pytest

    from perftests.harness.cuda import CudaDevice


class Told(Scene):
    """A scene that says on which stream, and of which event."""

    def spin(self, nanoseconds: int, log: int) -> None:
        super().spin(nanoseconds, log)
        self.said[-1] += f" on {self.now.name}"

    def launch(self) -> None:
        self.said.append(f"launch on {self.now.name}")

    def flush(self, stream: Any) -> None:
        self.said.append(f"flush on {stream.name}")

    def enqueue(self, handle: int) -> None:
        self.said.append(f"hold on {handle}")

    def record(self, event: tuple[str, int], stream: Any) -> None:
        self.said.append(f"{event[0]} {event[1]} on {stream.name}")

    def wait_for(self, event: tuple[str, int], stream: Any) -> None:
        self.said.append(f"{stream.name} waits for {event[0]} {event[1]}")

    def shown(self, pair: tuple[tuple[str, int], tuple[str, int]]) -> float:
        self.said.append(f"reads {pair[0][1]}")
        return super().shown(pair)

    def query(self, event: tuple[str, int]) -> bool:
        self.said.append(f"asks for {event[0]} {event[1]}")
        return event[0] == "stop"


def test_streams_take_turns_and_no_flush_runs_beside_a_timed_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The home stream has no part in it, and a launch is late or not once all is enqueued.

    What a launch took is read while the next one keeps the device busy.
    """
    fake_cuda.install(monkeypatch)
    scene = Told(persists=True)
    monkeypatch.setattr(cuda_runners, "_record", scene.record)
    monkeypatch.setattr(cuda_runners, "_wait", scene.wait_for)
    monkeypatch.setattr(cuda_runners, "_query", scene.query)
    monkeypatch.setattr(cuda_runners, "_TURN", 2)
    one, two = (cast("Any", Named(name, handle)) for name, handle in (("one", 1), ("two", 2)))
    home = cast("Any", Named("home", 7))
    runner = ColdRunner(cast("CudaDevice", scene), [scene.launch], [home, one, two])
    runner._streams = cycle([one, two])
    scene.said.clear()
    runner.batch(4)
    assert scene.said == [
        "wait", "spin on one", "reset", "flush on one",
        "start 0 on one", "launch on one", "stop 0 on one", "flush on one",
        "asks for start 0", "asks for stop 0", "reset",
        "hold on 1", "start 1 on one", "launch on one", "stop 1 on one",
        "two waits for stop 1", "flush on two",
        "asks for start 1", "release", "reads 0", "asks for stop 1", "reset",
        "start 2 on two", "launch on two", "stop 2 on two", "flush on two",
        "asks for start 2", "reads 1", "asks for stop 2", "reset",
        "hold on 2", "start 3 on two", "launch on two", "stop 3 on two",
        "asks for start 3", "release", "reads 2", "asks for stop 3", "wait", "reads 3",
    ]  # fmt: skip
