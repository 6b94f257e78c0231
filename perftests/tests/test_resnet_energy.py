"""The joules of ResNet-50: counted by another process beside the very loop that is timed."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.energy import EnergyError, Power, Step
from perftests.harness.state import Watch
from perftests.studies import counter, joules, resnet_loop
from perftests.tests import fake_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

METER = """
import sys, time
print("ready", flush=True)
before, last = time.monotonic(), 0
while True:
    time.sleep(0.001)
    now, step = time.monotonic(), int(time.monotonic() / 0.005)
    if step != last:
        print(f"step {before:.6f} {now:.6f} {400.0 * 0.005 * step:.3f}", flush=True)
        print(f"busy {now:.6f} 0.97", flush=True)
    before, last = now, step
"""
"""A board that draws 400 W, whose counter moves every 5 ms."""


def metered(monkeypatch: pytest.MonkeyPatch, program: str = METER) -> Any:
    """Return a bench on the fake GPU whose counter is read by another process."""
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(counter, "command", lambda _uuid: [sys.executable, "-c", program])
    monkeypatch.setattr(resnet_loop, "_SETTLE_S", 0.05)
    monkeypatch.setattr(resnet_loop, "_WINDOW_S", 0.25)
    monkeypatch.setattr(resnet_loop, "_IDLE_S", 0.1)
    bench = fake_cuda.bench()
    bench.watch = Watch()
    return bench


def test_joules_and_iterations_are_of_the_same_window_whatever_the_host_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that is held up halfway costs images a second, and no joules that are not its."""
    bench = metered(monkeypatch)
    calls: list[float] = []

    def call() -> None:
        calls.append(time.monotonic())
        time.sleep(0.001 if len(calls) < 100 else 0.004)

    load = resnet_loop.loaded(call, bench, 0.001)
    assert load.power.watts == pytest.approx(400, rel=0.1)
    assert load.power.window_s > 0.15
    start, end = calls[2] + 0.05, calls[-1]
    pace = sum(start < at <= end for at in calls) / (end - start)
    assert load.per_s == pytest.approx(pace, rel=0.15)
    assert load.joules * load.per_s == pytest.approx(load.power.watts, rel=1e-6)
    assert load.joules_error > 0
    assert load.utilisation == pytest.approx(0.97)


def test_the_window_for_energy_is_the_timed_loop_and_asks_nothing_between_two_iterations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = metered(monkeypatch)
    bench.watch = SilentWatch()
    done: list[str] = []
    record = fake_cuda.Event.record

    def recorded(event: fake_cuda.Event) -> None:
        done.append("record")
        record(event)

    monkeypatch.setattr(fake_cuda.Event, "record", recorded)
    monkeypatch.setattr(
        fake_cuda.Event, "synchronize", lambda _self: pytest.fail("the host waited for the device")
    )

    def call() -> None:
        done.append("call")
        time.sleep(0.001)

    monkeypatch.setattr(resnet_loop, "_WITHIN_S", 0.0)
    resnet_loop.iteration_times(call, bench)
    timed = done[4:]  # two to see how long one takes, two ahead of the loop
    done.clear()
    resnet_loop.loaded(call, bench, 0.001)
    assert timed == ["record"] + ["call", "record"] * 20
    assert done[2 : 2 + len(timed)] == timed
    assert set(pairwise(done[3:])) == {("call", "record"), ("record", "call")}


class SilentWatch(Watch):
    """An NVML that must not be asked."""

    def ask(self, name: str, *_arguments: object) -> Any:
        pytest.fail(f"{name} was asked for in the loop's own process")


def test_the_idle_board_is_counted_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resnet_loop.idle_power(metered(monkeypatch))
    assert found.watts == pytest.approx(400, rel=0.1)
    apart = resnet_loop.joined(Power(100.0, 0.0, 1.0, 10), Power(106.0, 0.0, 1.0, 10))
    assert (apart.watts, apart.error_w) == (103.0, 3.0)


def test_without_an_energy_counter_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch)
    with pytest.raises(EnergyError, match="NVML is absent"):
        resnet_loop.loaded(lambda: None, fake_cuda.bench(), 0.001)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('NVML refused the energy counter: No Permission')", "No Permission"),
        ("raise ImportError('no pynvml')", "no pynvml"),
        ("print('ready', flush=True); input()", "moved 0 times"),
    ],
)
def test_a_counter_that_cannot_be_watched_is_an_error_that_says_why(
    monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    bench = metered(monkeypatch, program)
    with pytest.raises(EnergyError, match=why):
        resnet_loop.loaded(lambda: time.sleep(0.001), bench, 0.001)


def test_the_watcher_is_a_program_that_says_when_it_has_no_counter() -> None:
    with (
        pytest.raises(EnergyError, match="cannot be watched: NVML"),
        counter.watched(counter.command("GPU-nobody")),
    ):
        pytest.fail("there is no such GPU")


def test_the_watcher_tells_between_which_times_each_step_came() -> None:
    now, told = [10.0], list[str]()

    def read() -> float:
        now[0] += 0.003  # as NVML takes
        return float(int(now[0] / 0.1))

    clock_of(now, read, told)
    steps = [line.split() for line in told if line.startswith("step")]
    assert [float(value) for *_, value in steps] == [101.0, 102.0, 103.0, 104.0]
    for _, start, end, value in steps:
        assert float(start) <= float(value) / 10 <= float(end)
    assert next(line for line in told if line.startswith("busy")).endswith(" 0.50")


def clock_of(now: list[float], read: Callable[[], float], told: list[str]) -> None:
    """Follow a counter on a clock that moves only with its readings."""
    joules.follow(read, lambda: 0.5, told.append, 0.45, clock=lambda: now[0])


def test_iterations_are_shared_out_between_steps() -> None:
    """One iteration each 10 ms from 100.0 on; 5 J each; the counter was seen every 25 ms."""
    ends = [100.0 + 0.01 * k for k in range(101)]
    steps = [Step(500.0 * (0.025 * k), 100.0 + 0.025 * k, 0.0) for k in range(41)]
    found = counter.load(counter.Seen(steps), ends, 0.2)
    assert found.joules == pytest.approx(5.0)
    assert found.joules_error == pytest.approx(0.0, abs=1e-9)
    assert found.per_s == pytest.approx(100.0)
    assert found.power.watts == pytest.approx(500.0)
    # seen within 2 ms at both ends of 0.8 s: 5 J * hypot(0.2, 0.2) iterations of 80
    blurred = counter.load(
        counter.Seen([replace(step, within_s=0.002) for step in steps[:-1]]), ends, 0.19
    )
    assert blurred.joules_error == pytest.approx(5.0 * 0.2 * 2**0.5 / 77.5, rel=0.05)
