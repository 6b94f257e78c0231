"""A look at the order of a stream, and what it needs: a host in time, streams beside each other."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import order

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD, OTHER, THIRD = "held", "other", "third"
OTHERS: Any = [OTHER, THIRD]


class Device:
    """A device with three streams that does what it is told at the next wait.

    The hold counts down by the host's steps; a step is a call that enqueues. Streams `beside` the
    held one do their work at once.
    """

    def __init__(self, *, step_ns: float = 1e3) -> None:
        self.beside, self.step_ns = {OTHER, THIRD}, step_ns
        self.held_ns = 0.0
        self.holds: list[int] = []
        self.current = ""
        self.queue: list[Any] = []
        self.kernels = SimpleNamespace(spin=self.spin, empty=lambda: self.enqueue(lambda: None))

    @contextmanager
    def on(self, stream: str) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def spin(self, ns: int) -> None:
        self.holds.append(ns)
        self.held_ns = ns

    def passes(self, ns: float) -> None:
        self.held_ns -= ns
        if self.held_ns <= 0:
            self.drain()

    def enqueue(self, work: Any) -> None:
        if self.current in self.beside:
            work()
        else:
            self.queue.append(work)
        self.passes(self.step_ns)

    def drain(self) -> None:
        for work in self.queue:
            work()
        self.queue.clear()

    def synchronize(self) -> None:
        self.held_ns = 0
        self.drain()


class Event:
    """An event that has happened when its stream came to it."""

    def __init__(self) -> None:
        self.happened = False


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()

    def record(event: Event, stream: str) -> None:
        with made.on(stream):
            made.enqueue(lambda: setattr(event, "happened", True))

    def query(event: Event) -> bool:
        made.passes(made.step_ns)
        return event.happened

    monkeypatch.setattr(order, "_Event", Event)
    monkeypatch.setattr(order, "_record", record)
    monkeypatch.setattr(order, "_query", query)
    return made


class Seen:
    """A tensor on the device: what is copied into it is so when the device comes to it."""

    def __init__(self, device: Device, value: str) -> None:
        self.device, self.value = device, value

    def poison(self, _pattern: int) -> None:
        self.write("poison")

    def write(self, value: str) -> None:
        self.device.enqueue(lambda: setattr(self, "value", value))

    def copy_(self, other: Seen) -> None:
        self.device.enqueue(lambda: setattr(self, "value", other.value))


def looked(device: Device, launch: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str | None]:
    """Return what a look saw, and why it might not tell."""
    monkeypatch.setattr(torch, "empty_like", lambda _out: Seen(device, "nothing"))
    out = Seen(device, "nothing")
    buffers: Any = SimpleNamespace(output=out, output_tensor=out)
    seen: Any = order.look(device, lambda: launch(out), buffers, HELD)  # type: ignore[arg-type]
    return seen.output.value, seen.unseen


def slow(device: Device, waits_ns: float, stream: str) -> Any:
    """Return a launch on a stream that takes the host so long before and after."""

    def launch(out: Seen) -> None:
        device.passes(waits_ns)
        with device.on(stream):
            out.write("right")
        device.passes(waits_ns)

    return launch


@pytest.mark.parametrize(
    ("waits_ns", "holds"),
    [(0, [300_000]), (200_000, [300_000, 3_000_000]), (2e6, [300_000, 3_000_000, 30_000_000])],
)
@pytest.mark.parametrize(("stream", "output"), [(HELD, "right"), (OTHER, "poison")])
def test_a_look_is_repeated_with_a_longer_hold_until_the_host_is_in_time(
    stream: str,
    output: str,
    waits_ns: float,
    holds: list[int],
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Work beside the stream that came behind a hold's end would look right."""
    launch = slow(device, waits_ns, stream)
    assert looked(device, launch, monkeypatch) == (output, None)
    assert device.holds == holds


def test_a_host_that_is_never_in_time_is_told(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, unseen = looked(device, slow(device, 4e7, OTHER), monkeypatch)
    assert output == "right", "nothing could tell it from work in order"
    assert unseen is not None
    assert "in 30 ms the host had not enqueued the launch" in unseen
    assert len(device.holds) == 3


def test_a_device_whose_streams_run_beside_each_other_is_not_blind(device: Device) -> None:
    assert order.why_blind(device, HELD, OTHERS) is None  # type: ignore[arg-type]
    assert device.holds == [300_000]


def test_one_stream_that_waits_for_the_held_one_makes_no_device_blind(device: Device) -> None:
    """It may lie in the same hardware queue."""
    device.beside = {THIRD}
    assert order.why_blind(device, HELD, OTHERS) is None  # type: ignore[arg-type]
    assert device.holds == [300_000, 300_000]


def test_a_slow_host_makes_no_device_blind(device: Device) -> None:
    device.step_ns = 2e5
    assert order.why_blind(device, HELD, OTHERS[:1]) is None  # type: ignore[arg-type]
    assert device.holds == [300_000, 3_000_000]


@pytest.mark.parametrize(
    ("variables", "advice"),
    [
        ({}, "end the tool that serialises them"),
        ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, "unset CUDA_DEVICE_MAX_CONNECTIONS=1"),
        ({"CUDA_LAUNCH_BLOCKING": "1"}, "unset CUDA_LAUNCH_BLOCKING=1"),
    ],
)
def test_where_streams_wait_for_each_other_the_reason_is_named(
    variables: dict[str, str], advice: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in order._SERIALISING:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    device.beside.clear()
    told = order.why_blind(device, HELD, OTHERS)  # type: ignore[arg-type]
    assert told is not None
    assert told.endswith(f"expected it to run beside them; {advice}")
    assert len(device.holds) == 2 * 3
