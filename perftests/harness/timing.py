"""The timed part of the chain: calibrate, warm up, sample, and judge whether the window was fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perftests.harness.allocations import GpuAllocations, cpu_allocation
from perftests.harness.clock import monotonic, perf_counter
from perftests.harness.cooling import RELAPSED, SLOW_CLOCK, cool_down
from perftests.harness.errors import ChainBrokenError, Link
from perftests.harness.sampling import Runner, Sample, Warmth, collect, warm_up
from perftests.harness.state import State, slowing_reasons
from perftests.harness.stop import CUT_OFF, relative_error
from perftests.harness.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.record import Findings
    from perftests.harness.session import Bench

_COLD_START_SECONDS = 0.1
_KEPT_WARM_SECONDS = 0.5
_SHORT_WARM_SECONDS = 0.004
_WARM_CAP = {"cuda": 1.5, "cpu": 0.05}
_NOISE_FACTOR = 5
_BELOW_FLOOR = 0.7
_NEAR_FLOOR = 1.5
_LATE_SHARE = 0.2
_MOST_OF_COPY = 1.3
"""Share of a copy's rate that a CPU's caches and write-backs can explain."""
_WELL_ABOVE_L2 = 4
_WELL_ABOVE_FLOOR = 10
_LEAST_OF_PEAK = 0.5
"""Part of the theoretical rate that a large copy reaches on any board: usual are 75 to 95 %."""


@dataclass(frozen=True)
class Timed:
    """A sample that waits for the last links before it may be reported."""

    sample: Sample
    runner: Runner
    status: str

    def once(self) -> None:
        """Launch once on every buffer set, by the path that was timed."""
        self.runner.once()

    def accept(self, found: Findings) -> None:
        """Hand the sample over: every link has held."""
        found.sample, found.status = self.sample, self.status


def time_workload(
    found: Findings,
    bench: Bench,
    launches: Sequence[Callable[[], object]],
    poison: Callable[[], object],
) -> Timed:
    """Return the sample of one launch for each buffer set, judged but not yet accepted.

    `poison` is called between warm-up and timed loop: what the loop leaves is its own work.

    Raises ChainBrokenError for allocations in the timed region, an empty sample, a time below an
    empty launch's and a rate above the theoretical peak of a cold run.
    """
    mode = found.mode
    began = perf_counter()
    found.peaks = bench.peaks(found.workload.bytes_moved, mode)
    found.walls["yardsticks"] = perf_counter() - began
    found.flush_bytes = bench.device.flush_bytes if mode == "cold" else None
    _check_peak(found, bench)
    look_at_launch(found, bench, launches[0])
    began = perf_counter()
    allocates = found.workload.allocates is not None  # the allocator keeps memory for each stream
    runner = bench.device.runner(mode, launches, streams=not allocates)
    found.walls["timing"] = perf_counter() - began
    told = dict(found.warnings), dict(found.reasons)
    timed = _window(found, bench, runner, poison)
    cooling = cool_down(bench) if timed.status == "throttled" else None
    if cooling is None:
        return timed
    if cooling.is_over:
        found.warnings, found.reasons = told
        timed = _window(found, bench, runner, poison)
    again = cooling.is_over and timed.status == "throttled"
    if again:  # whatever slows it does not show while it idles: to wait would help no other case
        bench.cooling_left_s = 0.0
    found.warnings["cooled_down"] = cooling.told + (RELAPSED if again else "")
    return timed


def _window(found: Findings, bench: Bench, runner: Runner, poison: Callable[[], object]) -> Timed:
    """Warm up, sample, and judge the window; the times of several windows of a case add up."""
    found.states["before"] = bench.watch.read()
    began = perf_counter()
    warm = _warmed(bench, runner)
    poison()
    sample = _collected(found, bench, runner, warm)
    runner.rest(sample.late + len(sample.seconds))
    bench.device.synchronize()
    spent = {
        "timing": perf_counter() - began,
        "loop": sample.loop_s,
        "busy": warm.busy_s + sample.busy_s,
    }
    found.walls |= {name: found.walls.get(name, 0.0) + wall for name, wall in spent.items()}
    found.states["after"] = bench.watch.read()
    bench.last_busy = monotonic()
    _note(found, bench, sample)
    return Timed(sample, runner, _status(found, bench, sample))


def _warmed(bench: Bench, runner: Runner) -> Warmth:
    """Warm up for long where the device has cooled down, for short where it comes from work."""
    idle = monotonic() - bench.last_busy
    floor = _SHORT_WARM_SECONDS if idle < _KEPT_WARM_SECONDS else _COLD_START_SECONDS
    cap = _WARM_CAP[bench.device.kind]
    return warm_up(runner, floor_s=min(floor, cap), cap_s=cap)


def _collected(found: Findings, bench: Bench, runner: Runner, warm: Warmth) -> Sample:
    """Sample, read the device's state meanwhile, and on a GPU count what is allocated."""

    def look() -> None:
        found.states["during"] = bench.watch.read()

    rule = bench.rule()
    if bench.device.kind == "cpu":
        return collect(runner, rule, warmth=warm, halfway=look)
    watch = GpuAllocations(bench.device.device, bench.device.cupy)  # type: ignore[union-attr]
    with watch:
        sample = collect(runner, rule, warmth=warm, halfway=look)
    _judge_allocations(found, watch.found())
    return sample


def look_at_launch(found: Findings, bench: Bench, launch: Callable[[], object]) -> None:
    """Launch once and refuse what it allocates, where the timed loop itself cannot be watched.

    On a CPU that would cost time; replays of a graph allocate nothing, whatever was captured.
    """
    if bench.device.kind == "cpu":
        _judge_allocations(found, cpu_allocation(launch))
    elif found.mode != "cold":
        watch = GpuAllocations(bench.device.device, bench.device.cupy)  # type: ignore[union-attr]
        with watch:
            launch()
        _judge_allocations(found, watch.found())


def _judge_allocations(found: Findings, allocated: str | None) -> None:
    """Refuse allocations in the timed region, or warn where the workload declared them."""
    if allocated is None:
        return
    declared = found.workload.allocates
    if declared is None:
        raise ChainBrokenError(
            Link.ALLOCATION,
            f"{allocated}; allocate before the launch, or say in `allocates` why it has to",
        )
    found.warnings["allocates"] = f"{declared}: {allocated}"


def _note(found: Findings, bench: Bench, sample: Sample) -> None:
    """Write down what a reader of the result must know about its window."""
    states = list(found.states.values())
    if bench.watch.absent is not None:
        for name in ("before", "during", "after"):
            found.reasons[name] = bench.watch.absent
    for name, reason in bench.watch.refused.items():
        of_states = name in State.__dataclass_fields__
        for part in found.states if of_states else ("environment",):
            found.reasons[f"{part}.{name}"] = f"NVML refused: {reason}"
    unread = bench.watch.unread()
    if bench.device.kind == "cuda" and unread is not None:
        found.warnings["nvml"] = unread
    if any(state and state.other_processes for state in states):
        found.warnings["shared_device"] = "another process computed on the device in this window"
    total = sample.late + len(sample.seconds)
    if sample.late > _LATE_SHARE * total:
        found.warnings["late_launches"] = (
            f"{sample.late} launches came too late to hide the host's latency and were dropped"
        )
    if bench.device.kind == "cuda" and not sample.steady:
        found.warnings["unsteady"] = "the clock was still moving when the warm-up was cut off"


def _status(found: Findings, bench: Bench, sample: Sample) -> str:
    """Return ok, noisy or throttled; raise ChainBrokenError where the time cannot be true."""
    if not sample.seconds:
        raise ChainBrokenError(
            Link.SAMPLES,
            f"none left of {sample.late} launches: none was enqueued while the device was held; "
            "a launch must not wait for the device",
        )
    median = float(summarise(sample.seconds)["median_s"])
    _check_floor(found, bench, median)
    peaks = found.peaks
    peak = peaks.theoretical_bytes_per_s if peaks else None
    rate = found.workload.bytes_moved / median
    if found.mode == "cold" and peak is not None and rate > peak:
        raise ChainBrokenError(
            Link.PEAK,
            f"{rate / 1e9:.0f} GB/s is more than the {peak / 1e9:.0f} GB/s of the memory: the "
            "bytes are counted wrongly or the data came from a cache",
        )
    slowing = slowing_reasons(list(found.states.values()))
    if slowing:
        found.warnings["throttled"] = f"the device slowed itself: {', '.join(slowing)}"
        return "throttled"
    if _is_slow_clock(bench, sample):
        found.warnings["slow_clock"] = "the SM clock stood below 75 % of its highest"
        return "throttled"
    if bench.device.kind == "cpu":
        _check_copy(found, rate)
    if sample.stop_reason not in CUT_OFF:
        return "ok"
    rule = bench.settings.rule(bench.device.kind)
    error = relative_error(sample.seconds)
    if error > _NOISE_FACTOR * rule.target_at(median):
        found.warnings["noisy"] = (
            f"stopped at its {sample.stop_reason} with a relative standard error of {error:.2%}"
        )
        return "noisy"
    return "ok"


def _check_floor(found: Findings, bench: Bench, median_s: float) -> None:
    floor = found.peaks.floor_s if found.peaks else None
    if bench.device.kind != "cuda" or floor is None:
        return
    if median_s < _BELOW_FLOOR * floor:
        raise ChainBrokenError(
            Link.SAMPLES,
            f"{median_s * 1e6:.2f} us is less than an empty kernel's {floor * 1e6:.2f} us: the "
            "timer did not see the work; launch on the current stream",
        )
    if median_s < _NEAR_FLOOR * floor:
        found.warnings["near_floor"] = (
            f"an empty kernel shows {floor * 1e6:.2f} us by the same timer: most of this time is "
            "the launch"
        )


def _check_peak(found: Findings, bench: Bench) -> None:
    """Warn where a copy from memory and the rate that the device's attributes give disagree.

    Only of a copy well above L2 and launch: a smaller one says nothing of the memory.
    """
    peaks = found.peaks
    peak, copy = (peaks.theoretical_bytes_per_s, peaks.copy_bytes_per_s) if peaks else (None, None)
    if found.mode != "cold" or peaks is None or peak is None or copy is None:
        return
    moved = found.workload.bytes_moved
    is_small = moved < _WELL_ABOVE_L2 * bench.device.cache_bytes
    if is_small or moved / copy < _WELL_ABOVE_FLOOR * (peaks.floor_s or 0.0):
        return
    if not _LEAST_OF_PEAK * peak <= copy <= peak:
        found.warnings["peak_doubtful"] = (
            f"a copy of this size moves {copy / 1e9:.0f} GB/s, {copy / peak:.0%} of the "
            f"{peak / 1e9:.0f} GB/s that memory clock and bus width give; expected "
            f"{_LEAST_OF_PEAK:.0%} to 100%: the device's attributes are wrong, it is a part "
            "of a device (MIG), or other work held the copy up"
        )


def _check_copy(found: Findings, rate: float) -> None:
    """Drop a copy that the workload outran by far: other work on the CPU held the copy up."""
    peaks = found.peaks
    copy = peaks.copy_bytes_per_s if peaks else None
    if peaks is None or copy is None or rate <= _MOST_OF_COPY * copy:
        return
    found.peaks = replace(peaks, copy_bytes_per_s=None, copy_source=None)
    found.reasons["peaks.copy_bytes_per_s"] = (
        f"a copy showed {copy / 1e9:.2f} GB/s beside {rate / 1e9:.2f} GB/s: other work on this "
        "machine held it up"
    )


def _is_slow_clock(bench: Bench, sample: Sample) -> bool:
    highest = getattr(bench.device, "highest_sm_clock_hz", None)
    clock = sample.sm_clock_hz
    return bool(highest and clock and clock < SLOW_CLOCK * highest)
