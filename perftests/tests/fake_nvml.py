"""An NVML that answers from a table, or refuses."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


class NVMLError(Exception):
    """What NVML raises."""


@dataclass
class Process:
    """One entry of NVML's process list."""

    pid: int


@dataclass
class FakeNvml:
    """Stands in for pynvml: `refused` names the functions that raise."""

    uuid: bytes = b"GPU-abc"
    mask: int = 0
    pids: tuple[int, ...] = (os.getpid(),)
    refused: frozenset[str] = frozenset()
    calls: list[str] = field(default_factory=list)

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVMLError = NVMLError

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            if name in self.refused:
                raise NVMLError(f"{name}: Insufficient Permissions")
            return self.answer(name, arguments)

        return call

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlDeviceGetHandleByUUID":
            if arguments[0] != self.uuid:
                raise NVMLError("Not Found")
            return "handle"
        if name == "nvmlDeviceGetClockInfo":
            return 1980 if arguments[1] == self.NVML_CLOCK_SM else 3201
        if name == "nvmlDeviceGetComputeRunningProcesses":
            return [Process(pid) for pid in self.pids]
        return {
            "nvmlInit": None,
            "nvmlSystemGetDriverVersion": b"580.65.06",
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 123_456,
            "nvmlDeviceGetCurrentClocksEventReasons": self.mask,
            "nvmlDeviceGetCurrentClocksThrottleReasons": self.mask,
        }[name]
