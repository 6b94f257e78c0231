"""What the GPU says of itself around a window: clocks, throttle reasons, temperature, power.

Read through NVML and never set. Where NVML is absent or forbids a reading, the value is None and
one line says why.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from perftests.harness.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable

_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
SLOWING = frozenset(
    {"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"}
)
"""Reasons that make a window unfit; the others are idleness or a setting of the owner."""
_OLDER_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"
_TELLING = frozenset({"throttle_reasons", "other_processes"})
_UNKNOWN = "whether the device slowed itself or was shared is not fully known"
_ABSENT_CURE = (
    "install nvidia-ml-py and the driver's NVML library (for a container: its capability utility)"
)
_UNKNOWN_CURE = "install the driver's own libnvidia-ml in this container or environment"
_REFUSED_CURE = "measure as a user who may read them, on a driver that can"


@dataclass(frozen=True)
class State:
    """One reading. Clocks in hertz; `other_processes` counts those of other calls that compute."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    other_processes: int | None = None

    def as_record(self) -> dict[str, object]:
        """Return the reading as the record carries it."""
        return {**self.__dict__, "throttle_reasons": list(self.throttle_reasons)}


@dataclass
class Watch:
    """NVML's view of one device, matched by UUID; `absent` says why there is none.

    `processes` knows which of those that compute there belong to this call.
    """

    handle: Any = None
    nvml: Any = None
    absent: str | None = None
    cure: str = _ABSENT_CURE
    refused: dict[str, str] = field(default_factory=dict)
    processes: Processes | None = None

    def read(self) -> State | None:
        """Return a reading, or None where NVML is absent."""
        if self.handle is None:
            return None
        nvml, handle = self.nvml, self.handle
        clock = nvml.nvmlDeviceGetClockInfo
        sm = self._ask("sm_clock_hz", lambda: clock(handle, nvml.NVML_CLOCK_SM))
        memory = self._ask("memory_clock_hz", lambda: clock(handle, nvml.NVML_CLOCK_MEM))
        celsius = self._ask(
            "temperature_c",
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        )
        milliwatts = self._ask("power_w", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return State(
            sm_clock_hz=None if sm is None else sm * 1e6,
            memory_clock_hz=None if memory is None else memory * 1e6,
            temperature_c=None if celsius is None else float(celsius),
            power_w=None if milliwatts is None else milliwatts / 1e3,
            throttle_reasons=self._throttle_reasons(),
            other_processes=self._other_processes(),
        )

    def unread(self) -> str | None:
        """Return in one line what no reading could tell and what to do, None where all could."""
        if self.absent is not None:
            return f"{self.absent}; {_UNKNOWN}: {self.cure}"
        lost = [known.name for known in fields(State) if known.name in self.refused]
        if not lost:
            return None
        unknown = f"; {_UNKNOWN}" if _TELLING & set(lost) else ""
        names = ", ".join(lost)
        return f"NVML refused {names} ({self.refused[lost[0]]}){unknown}: {_REFUSED_CURE}"

    def driver_version(self) -> str | None:
        """Return the driver's version, None where NVML is absent or refuses."""
        if self.nvml is None:
            return None
        name = "nvmlSystemGetDriverVersion"
        version = self._ask(name, getattr(self.nvml, name))
        return version.decode() if isinstance(version, bytes) else version

    def ask(self, name: str, *arguments: object) -> Any:
        """Return one more fact by the name of its NVML function, None where refused."""
        if self.handle is None:
            return None
        function = getattr(self.nvml, name, None)
        if function is None:
            return None
        return self._ask(name, lambda: function(self.handle, *arguments))

    def _ask(self, name: str, question: Callable[[], Any]) -> Any:
        """Return NVML's answer, None with a kept reason where it refuses."""
        if name in self.refused:
            return None
        try:
            return question()
        except self.nvml.NVMLError as error:
            self.refused[name] = str(error)
            return None

    def _throttle_reasons(self) -> tuple[str, ...]:
        mask = self._ask("throttle_reasons", self._throttle_mask) or 0
        return tuple(name for bit, name in _REASONS.items() if mask & bit)

    def _throttle_mask(self) -> int:
        """Ask by today's name, then by that which drivers before 535 know alone."""
        names = ("nvmlDeviceGetCurrentClocksEventReasons", _OLDER_REASONS)
        known = [function for name in names if (function := getattr(self.nvml, name, None))]
        for function in known[:-1]:
            with suppress(self.nvml.NVMLError):
                return int(function(self.handle))
        return int(known[-1](self.handle))

    def _other_processes(self) -> int | None:
        """Count the compute processes of others: not this one, nor its parent, children, fellows.

        Those have contexts here too, but take turns by the lock.
        """
        found = self._ask(
            "other_processes", lambda: self.nvml.nvmlDeviceGetComputeRunningProcesses(self.handle)
        )
        if found is None:
            return None
        pids = {process.pid for process in found}
        if len(pids) < 2:  # we compute here ourselves: no need to look for our fellows
            return 0
        ours = self.processes.of_this_run() if self.processes else frozenset({os.getpid()})
        if os.getpid() in pids:
            return len(pids - ours)
        # Inside a container NVML numbers processes as the host does, or lists none: as many as are
        # ours are taken off, of which each has a context; none can be told from another.
        return max(0, len(pids) - len(ours))


def watch_device(uuid: str) -> Watch:
    """Return NVML's view of the device with this UUID (with or without the prefix "GPU-")."""
    try:
        import pynvml
    except ImportError:
        return Watch(absent="NVML is absent: nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Watch(absent=f"NVML is absent: {error}")
    for prefix in ("", "GPU-", "MIG-"):
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID((prefix + uuid).encode())
        except pynvml.NVMLError:
            continue
        return Watch(handle=handle, nvml=pynvml, processes=Processes(uuid))
    return Watch(absent=f"NVML knows no device with UUID {uuid}", cure=_UNKNOWN_CURE)


def slowing_reasons(states: list[State | None]) -> tuple[str, ...]:
    """Return the reasons in any reading that make a window unfit, sorted."""
    seen = {name for state in states if state for name in state.throttle_reasons}
    return tuple(sorted(seen & SLOWING))
