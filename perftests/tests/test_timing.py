"""How a window is judged: what makes it throttled, noisy, shared or no sample at all. No GPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest
import torch

from perftests.harness import sampling, timing
from perftests.harness.calibrate import Peaks
from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.record import Findings
from perftests.harness.sampling import Batch
from perftests.harness.settings import Settings
from perftests.harness.state import State, Watch
from perftests.harness.stop import StopRule
from perftests.harness.timing import time_workload
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.session import Bench

CALM = State(1.98e9, 3.2e9, 40.0, 300.0, (), 0)
PEAKS = Peaks(4.9e12, 4.1e12, "driver", 4.2e12, 6.7e13, 3e-6)
MOVED = 8 * 1_000_000


@dataclass
class Device:
    """A GPU of scripted launches: seconds, clock and late ones of each batch."""

    seconds: Callable[[int], float]
    clock_hz: float | None = 1.98e9
    late_share: float = 0.0
    kind: str = "cuda"
    highest_sm_clock_hz: float = 1.98e9
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    cupy: object = None
    timer: str = "scripted"
    launched: int = 0
    turns: int = 0
    rested: int = 0
    cache_bytes: int = 60 << 20
    flush_bytes: int = 150 << 20
    clock_step: ClassVar[float] = 0.0

    def runner(self, *_: object, streams: bool) -> Device:
        return self

    def batch(self, count: int) -> Batch:
        late = int(self.late_share * count)
        found = [self.seconds(self.launched + i) for i in range(count - late)]
        self.launched += count
        self.turns += 1
        clock = self.clock_hz and self.clock_hz * (1 - self.clock_step * (self.turns % 2))
        return Batch(found, clock, late, sum(found))

    def rest(self, count: int) -> None:
        self.rested = count

    def once(self) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Nothing."""


class Readings(Watch):
    """NVML's answers in turn; the last repeats."""

    def __init__(self, *states: State) -> None:
        super().__init__(handle=1)
        self.states = list(states)

    def read(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@dataclass
class FakeBench:
    device: Device
    watch: Watch
    known: Peaks = PEAKS
    limits: StopRule = field(default_factory=lambda: StopRule(max_samples=64, max_seconds=0.05))
    settings: Settings = field(default_factory=Settings)
    last_busy: float = float("inf")
    cooling_left_s: float = 0.0

    def peaks(self, *_: object) -> Peaks:
        return self.known

    def rule(self) -> StopRule:
        return self.limits


@pytest.fixture(autouse=True)
def _no_allocations(monkeypatch: pytest.MonkeyPatch) -> None:
    class Allocations:
        def __init__(self, *_: object) -> None:
            """Watch nothing."""

        def __enter__(self) -> None:
            """Nothing."""

        def __exit__(self, *_: object) -> None:
            """Nothing."""

        def found(self) -> None:
            return None

    monkeypatch.setattr(timing, "GpuAllocations", Allocations)


def judged(
    seconds: float | Callable[[int], float] = 1e-5,
    *states: State,
    mode: str = "cold",
    moved: int = MOVED,
    bench: dict[str, Any] | None = None,
    **device: Any,
) -> Findings:
    """Time scripted launches and return what was found, accepted."""
    found = Findings(relu_workload(bytes_moved=moved), mode)
    script = seconds if callable(seconds) else lambda _: seconds
    fake = FakeBench(Device(script, **device), Readings(*(states or (CALM,))), **(bench or {}))
    poisoned: list[bool] = []
    timed = time_workload(found, cast("Bench", fake), [lambda: None], lambda: poisoned.append(True))
    assert poisoned == [True]
    timed.accept(found)
    return found


def test_a_calm_window_is_ok_and_has_its_states() -> None:
    found = judged()
    assert (found.status, found.warnings) == ("ok", {})
    assert set(found.states) == {"before", "during", "after"}
    assert found.sample is not None
    assert found.sample.sm_clock_hz == 1.98e9


@pytest.mark.parametrize(("late", "launched"), [(0.0, 8), (0.5, 16)])
def test_the_runner_learns_how_many_launches_there_were_late_ones_too(
    late: float, launched: int
) -> None:
    found = Findings(relu_workload(bytes_moved=MOVED), "cold")
    device = Device(lambda _: 1e-5, late_share=late)
    bench = FakeBench(device, Readings(CALM), limits=StopRule(max_samples=8, max_seconds=0.05))
    began: list[int] = []
    time_workload(
        found, cast("Bench", bench), [lambda: None], lambda: began.append(device.launched)
    )
    assert device.rested == device.launched - began[0] >= launched - 1


@pytest.mark.parametrize("when", [0, 1, 2])
def test_a_reason_to_slow_down_at_any_time_throttles_the_window(when: int) -> None:
    hot = replace(CALM, throttle_reasons=("sw_power_cap", "gpu_idle"))
    states = [CALM] * 3
    states[when] = hot
    found = judged(1e-5, *states)
    assert found.status == "throttled"
    assert found.warnings["throttled"] == "the device slowed itself: sw_power_cap"


def test_a_low_clock_throttles_the_window_without_a_reason() -> None:
    found = judged(clock_hz=1.2e9)
    assert found.status == "throttled"
    assert "below 75 %" in found.warnings["slow_clock"]


def test_another_process_marks_the_window() -> None:
    found = judged(1e-5, CALM, replace(CALM, other_processes=1), CALM)
    assert "another process" in found.warnings["shared_device"]


def test_a_sample_that_is_cut_off_while_noisy_says_so() -> None:
    found = judged(lambda i: 1e-5 if i % 2 else 2e-5)
    assert found.status == "noisy"
    assert "relative standard error" in found.warnings["noisy"]


def test_late_launches_are_told_and_alone_are_no_sample() -> None:
    found = judged(late_share=0.5)
    assert "came too late" in found.warnings["late_launches"]
    with pytest.raises(ChainBrokenError, match="none left of") as broken:
        judged(late_share=1.0, bench={"limits": StopRule(max_samples=64, max_seconds=0.01)})
    assert broken.value.link is Link.SAMPLES


def test_less_than_an_empty_launch_is_no_time_and_little_more_is_told() -> None:
    with pytest.raises(ChainBrokenError, match=r"less than an empty kernel's 3\.00 us") as broken:
        judged(2e-6, moved=100)
    assert broken.value.link is Link.SAMPLES
    assert "an empty kernel shows 3.00 us" in judged(4e-6, moved=100).warnings["near_floor"]
    assert judged(5e-6, moved=100).warnings == {}


def test_more_than_the_memory_gives_is_a_fault_when_cold_only() -> None:
    with pytest.raises(ChainBrokenError, match="more than the 4900 GB/s") as broken:
        judged(1e-5, moved=50_000_000)
    assert broken.value.link is Link.PEAK
    assert judged(1e-5, moved=50_000_000, mode="hot").status == "ok"


@pytest.mark.parametrize(
    ("copy", "told"),
    [(4.95e12, "4950 GB/s, 101%"), (4.8e12, None), (2.5e12, None), (2.4e12, "2400 GB/s, 49%")],
)
def test_a_large_copy_beside_the_theoretical_rate_tells_of_wrong_attributes(
    copy: float, told: str | None
) -> None:
    known = replace(PEAKS, copy_bytes_per_s=copy)
    moved = 4 * Device.cache_bytes
    found = judged(1e-4, moved=moved, bench={"known": known})
    assert found.status == "ok", "the time counts all the same"
    assert (told or "") in found.warnings.get("peak_doubtful", "")
    assert ("peak_doubtful" in found.warnings) is (told is not None)
    assert (
        "peak_doubtful"
        not in judged(1e-4, moved=moved, mode="hot", bench={"known": known}).warnings
    )
    small = judged(1e-4, moved=moved - 1, bench={"known": known})
    assert "peak_doubtful" not in small.warnings, "caches and launch have a share in it"


def test_a_copy_that_is_mostly_launch_says_nothing_of_the_peak() -> None:
    """8 MB at 1 TB/s take 8 us: less than ten empty launches, though the L2 is far smaller."""
    small = {"known": replace(PEAKS, copy_bytes_per_s=1e12)}
    assert "peak_doubtful" not in judged(1e-5, bench=small, cache_bytes=1 << 20).warnings
    quick = {"known": replace(PEAKS, copy_bytes_per_s=1e12, floor_s=7e-7)}
    assert "peak_doubtful" in judged(1e-5, bench=quick, cache_bytes=1 << 20).warnings


def test_what_a_flush_writes_stands_beside_a_cold_time() -> None:
    assert judged().flush_bytes == Device.flush_bytes
    assert judged(mode="hot").flush_bytes is None


def test_a_clock_that_never_settles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_WARM_CAP", {"cuda": 0.02})
    monkeypatch.setattr(Device, "clock_step", 0.02)
    found = judged()
    assert "still moving" in found.warnings["unsteady"]


def test_a_copy_that_a_cpus_workload_outran_by_far_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "cpu_allocation", lambda _launch: None)
    slow = replace(PEAKS, copy_bytes_per_s=MOVED / 2e-5)
    found = judged(kind="cpu", bench={"known": slow})
    assert found.peaks is not None
    assert found.peaks.copy_bytes_per_s is None
    assert "held it up" in found.reasons["peaks.copy_bytes_per_s"]
    assert judged(bench={"known": slow}).peaks == slow, "a GPU's copy had the device alone"


def test_a_device_that_rested_is_warmed_up_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    floors: list[float] = []
    usual = sampling.warm_up

    def noted(runner: Any, *, floor_s: float, cap_s: float) -> Any:
        floors.append(floor_s)
        return usual(runner, floor_s=0.0, cap_s=cap_s)

    monkeypatch.setattr(timing, "warm_up", noted)
    judged(bench={"last_busy": float("inf")})
    judged(bench={"last_busy": float("-inf")})
    assert floors == [0.004, 0.1]


def test_allocations_of_a_gpu_are_refused_unless_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    found = "3 through torch allocations while timing"
    monkeypatch.setattr("perftests.harness.timing.GpuAllocations.found", lambda _seen: found)
    with pytest.raises(ChainBrokenError, match="3 through torch") as broken:
        judged()
    assert broken.value.link is Link.ALLOCATION


@pytest.mark.parametrize(("mode", "refused"), [("cold", False), ("hot", True), ("rotated", True)])
def test_a_launch_is_watched_by_itself_where_a_graph_replays_it(
    mode: str, *, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripted loop calls no launch, as replays of a graph do not: what it allocated is past."""
    launched: list[bool] = []
    monkeypatch.setattr(
        "perftests.harness.timing.GpuAllocations.found",
        lambda _seen: "1 through torch" if launched else None,
    )
    found = Findings(relu_workload(bytes_moved=MOVED), mode)
    bench = cast("Bench", FakeBench(Device(lambda _: 1e-5), Readings(CALM)))
    if refused:
        with pytest.raises(ChainBrokenError, match="1 through torch") as broken:
            time_workload(found, bench, [lambda: launched.append(True)], lambda: None)
        assert broken.value.link is Link.ALLOCATION
        return
    time_workload(found, bench, [lambda: launched.append(True)], lambda: None)
    assert launched == []


def test_a_median_is_judged_not_a_mean_that_stray_launches_raise() -> None:
    """One launch in ten takes a hundred times as long: the mean would hide too short a time."""
    with pytest.raises(ChainBrokenError, match=r"2\.00 us is less than an empty kernel's"):
        judged(lambda i: 2e-4 if i % 10 == 5 else 2e-6, moved=100)


def test_cut_off_by_a_cap_is_noisy_only_beyond_five_times_the_target() -> None:
    """Alternating by 2 d, 64 values have an error of 0.2323 d; the target is 0.05 % at 1 ms."""
    limits = StopRule(max_samples=64, max_seconds=5.0, settle_samples=10**6)
    for half, status in ((0.008, "ok"), (0.02, "noisy")):
        found = judged(
            lambda i, half=half: 1e-3 * (1 + half * (-1) ** i),  # type: ignore[misc]
            bench={"limits": limits},
        )
        assert found.status == status, half
