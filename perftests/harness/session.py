"""One measuring session: devices, their locks, calibrations and facts, made once and kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from perftests.harness.calibrate import Calibrator, Peaks, theoretical_bandwidth, theoretical_flops
from perftests.harness.cpu import CpuDevice, cpu_threads
from perftests.harness.environment import (
    cpu_device,
    cpu_environment,
    gpu_device,
    gpu_environment,
    gpu_uuid,
)
from perftests.harness.errors import SettingError, UnfitError
from perftests.harness.lock import DeviceLock
from perftests.harness.oracle import Oracle
from perftests.harness.state import Watch, watch_device

if TYPE_CHECKING:
    from collections.abc import Hashable

    from perftests.harness.budget import Budget
    from perftests.harness.cuda import CudaDevice
    from perftests.harness.energy import Power
    from perftests.harness.settings import Settings
    from perftests.harness.stop import StopRule

_KHZ = 1e3


@dataclass
class Bench:
    """A device with everything that measuring on it needs."""

    device: CpuDevice | CudaDevice
    settings: Settings
    watch: Watch
    environment: dict[str, Any]
    facts: dict[str, Any]
    lock: DeviceLock
    launched: set[Hashable] = field(default_factory=set)
    last_busy: float = float("-inf")
    budget: Budget | None = None
    idle_power: Power | None = None
    cooling_left_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Give the session what it may wait for a device that slows itself."""
        self.cooling_left_s = self.settings.cooling_s

    def rule(self) -> StopRule:
        """Return when the next sample stops: the settings' rule within the session's budget."""
        rule = self.settings.rule(self.device.kind)
        if self.budget is None:
            return rule
        return replace(rule, budget_seconds=self.budget.sample_s())

    @cached_property
    def calibrator(self) -> Calibrator:
        """The yardsticks of this session."""
        rule = self.settings.rule(self.device.kind)
        return Calibrator(self.device, rule)

    @cached_property
    def theoretical(self) -> Peaks:
        """Data-sheet rates from the device's own attributes; none for a CPU."""
        if self.device.kind == "cpu":
            return Peaks()
        attributes = self.device.attributes  # type: ignore[union-attr]
        properties = self.device.properties  # type: ignore[union-attr]
        clock = attributes.get("MemoryClockRate") or getattr(properties, "memory_clock_rate", 0)
        width = attributes.get("GlobalMemoryBusWidth")
        width = width or getattr(properties, "memory_bus_width", 0)
        sm_clock = attributes.get("ClockRate") or getattr(properties, "clock_rate", 0)
        return Peaks(
            theoretical_bytes_per_s=theoretical_bandwidth(clock * _KHZ, width)
            if clock and width
            else None,
            theoretical_flop_per_s=theoretical_flops(
                (properties.major, properties.minor),
                properties.multi_processor_count,
                sm_clock * _KHZ,
            )
            if sm_clock
            else None,
        )

    def peaks(self, total_bytes: int, mode: str) -> Peaks:
        """Return both denominators for a result that moves `total_bytes`."""
        rate, source = self.calibrator.copy(total_bytes, mode)
        known = self.theoretical
        return Peaks(
            theoretical_bytes_per_s=known.theoretical_bytes_per_s,
            copy_bytes_per_s=rate,
            copy_source=source,
            two_read_bytes_per_s=self.calibrator.two_read(total_bytes, mode),
            theoretical_flop_per_s=known.theoretical_flop_per_s,
            floor_s=self.calibrator.floor_s(mode),
        )


class Session:
    """Benches by device, made when first asked for."""

    def __init__(self, settings: Settings, budget: Budget | None = None) -> None:
        self.settings = settings
        self.budget = budget
        self.oracle = Oracle()
        self._benches: dict[torch.device, Bench] = {}

    def bench(self, device: torch.device) -> Bench:
        """Return the bench of a device; raise UnfitError where it cannot measure."""
        if device == torch.device("cuda"):
            device = torch.device("cuda", torch.cuda.current_device())
        if device not in self._benches:
            self._benches[device] = self._make(device)
        return self._benches[device]

    def _make(self, device: torch.device) -> Bench:
        limit = self.settings.lock_seconds
        if device.type == "cpu":
            cpu = CpuDevice(threads=cpu_threads() if self.settings.timing else None)
            facts = cpu_device()
            absent = Watch(absent="a CPU has no NVML")
            lock = DeviceLock(facts["uuid"], timeout_s=limit)
            environment = cpu_environment(cpu.cache_bytes)
            return Bench(cpu, self.settings, absent, environment, facts, lock, budget=self.budget)
        if device.type != "cuda":
            raise UnfitError(f"cannot measure on {device}: expected a cpu or cuda device")
        from perftests.harness.cuda import CudaDevice

        gpu = CudaDevice(device.index)
        watch = watch_device(gpu_uuid(gpu))
        lock = DeviceLock(gpu_uuid(gpu), timeout_s=limit)
        lock.join()
        return Bench(
            gpu,
            self.settings,
            watch,
            gpu_environment(gpu, watch),
            gpu_device(gpu),
            lock,
            budget=self.budget,
        )


def choose_device(name: str, worker: int | None = None) -> torch.device:
    """Return the device that a flag names: auto, cpu, cuda or cuda:N.

    `auto` and `cuda` take the GPU whose turn it is among parallel workers; `auto` falls back to
    the CPU. Raises SettingError for another name, UnfitError for a GPU that is not there.
    """
    if name == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto" and not count:
        return torch.device("cpu")
    if name in {"auto", "cuda"}:
        if not count:
            raise UnfitError(f"cannot measure on {name}: torch sees no GPU")
        return torch.device("cuda", (worker or 0) % count)
    kind, _, index = name.partition(":")
    if kind != "cuda" or not index.isdigit():
        raise SettingError(f"cannot measure on {name!r}; expected auto, cpu, cuda or cuda:N")
    if int(index) >= count:
        raise UnfitError(
            f"cannot measure on {name}: torch sees {count} GPUs, from cuda:0 on; choose one of "
            "them with --bandwatch-device, or cpu"
        )
    return torch.device("cuda", int(index))
