"""What makes results comparable, and which physical device made them, as the record carries it."""

from __future__ import annotations

import hashlib
import platform
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from perftests.harness.cuda import CudaDevice
    from perftests.harness.state import Watch

_MEASURED = {
    "cpu": ("torch",),
    "cuda": ("torch", "triton", "cupy-cuda12x", "cupy-cuda13x", "nvidia-cuda-nvrtc"),
}
"""Libraries whose code is measured or compiles it; a new version of another changes no time."""
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def libraries(kind: str) -> dict[str, str]:
    """Return the versions of the installed libraries whose code is measured on a device kind."""
    found = {}
    for name in _MEASURED[kind]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def cpu_environment(cache_bytes: int) -> dict[str, Any]:
    """Return the environment of a CPU. Its clocks are the system's to choose."""
    return {
        "backend": "cpu",
        "gpu_model": cpu_name(),
        "driver": None,
        "cuda": None,
        "compute_capability": None,
        "libraries": libraries("cpu"),
        "clock_policy": None,
        "power_limit_w": None,
        "ecc": None,
        "mig": None,
        "l2_bytes": cache_bytes,
        "os": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def cpu_device() -> dict[str, Any]:
    """Return the CPU as a device; its UUID is a digest that does not give the machine away."""
    name = cpu_name()
    seed = f"{_machine_id()}|{name}|{torch.get_num_threads()}"
    return {
        "uuid": "cpu-" + hashlib.sha256(seed.encode()).hexdigest()[:16],
        "name": name,
        "memory_bytes": None,
        "multiprocessors": torch.get_num_threads(),
    }


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name with the threads used: results of other counts differ."""
    name = platform.processor() or platform.machine() or "CPU"
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {torch.get_num_threads()} threads"


def _machine_id() -> str:
    for path in _MACHINE_IDS:
        if path.exists():
            return path.read_text().strip()
    return socket.gethostname()


def gpu_environment(device: CudaDevice, watch: Watch) -> dict[str, Any]:
    """Return the environment of a GPU, NVML's part None where it is absent or forbidden."""
    properties = device.properties
    return {
        "backend": "cuda",
        "gpu_model": str(properties.name),
        "driver": watch.driver_version(),
        "cuda": torch.version.cuda,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "libraries": libraries("cuda"),
        "clock_policy": _clock_policy(watch),
        "power_limit_w": _scaled(watch.ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
        "ecc": _first_flag(watch.ask("nvmlDeviceGetEccMode")),
        "mig": _first_flag(watch.ask("nvmlDeviceGetMigMode")),
        "l2_bytes": device.cache_bytes,
        "os": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def gpu_device(device: CudaDevice) -> dict[str, Any]:
    """Return the physical GPU, by its UUID."""
    properties = device.properties
    return {
        "uuid": gpu_uuid(device),
        "name": str(properties.name),
        "memory_bytes": int(properties.total_memory),
        "multiprocessors": int(properties.multi_processor_count),
    }


def gpu_uuid(device: CudaDevice) -> str:
    """Return the GPU's UUID in NVML's spelling."""
    text = str(device.properties.uuid)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def _clock_policy(watch: Watch) -> str | None:
    """Return "applications SM/memory MHz" where the owner has set such clocks, else "default"."""
    if watch.nvml is None:
        return None
    kinds = (watch.nvml.NVML_CLOCK_SM, watch.nvml.NVML_CLOCK_MEM)
    now = [watch.ask("nvmlDeviceGetApplicationsClock", kind) for kind in kinds]
    usual = [watch.ask("nvmlDeviceGetDefaultApplicationsClock", kind) for kind in kinds]
    if None in now or now == usual:
        return "default"
    return f"applications {now[0]}/{now[1]} MHz"


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _first_flag(value: Any) -> bool | None:
    """Return the current state of a pair (current, pending), None where there is none."""
    return None if value is None else bool(value[0])
