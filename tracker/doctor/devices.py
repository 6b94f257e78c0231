"""Which NVIDIA GPUs the driver shows, by NVML and without torch, and what the CPU is called."""

import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_QUERY = "index,name,uuid,memory.total,driver_version,compute_cap"
_SMI_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver describes it; None where it does not say."""

    index: int
    name: str
    uuid: str
    memory_bytes: int | None = None
    compute_capability: str | None = None
    power_limit_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    persistence: bool | None = None
    other_processes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuSurvey:
    """The GPUs, the driver, the CUDA version that it supports, and why there are none."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    source: str | None = None
    problem: str | None = None


def survey_gpus() -> GpuSurvey:
    """Return what NVML says, else what nvidia-smi says, else why neither can."""
    try:
        import pynvml
    except ImportError:
        return _by_command("the package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _by_command(f"NVML cannot start: {error}")
    try:
        return _by_nvml(pynvml)
    except pynvml.NVMLError as error:
        return _by_command(f"NVML failed: {error}")
    finally:
        pynvml.nvmlShutdown()


def has_nvidia_gpu() -> bool:
    """Return whether the driver shows any GPU."""
    return bool(survey_gpus().gpus)


def cpu_name() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine() or "unknown CPU"


def _by_nvml(nvml: Any) -> GpuSurvey:
    count = nvml.nvmlDeviceGetCount()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    cuda = _ask(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return GpuSurvey(
        gpus=tuple(_gpu(nvml, index, handle) for index, handle in enumerate(handles)),
        driver=_text(_ask(nvml, nvml.nvmlSystemGetDriverVersion)),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        source="NVML",
        problem=None if handles else "the driver shows no GPU",
    )


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    limit = _ask(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
    processes = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return Gpu(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)) or "unnamed GPU",
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)) or "",
        memory_bytes=int(memory.total) if memory else None,
        compute_capability=".".join(map(str, capability)) if capability else None,
        power_limit_w=limit / 1000 if limit else None,
        ecc=_switch(_ask(nvml, nvml.nvmlDeviceGetEccMode, handle)),
        mig=_switch(_ask(nvml, nvml.nvmlDeviceGetMigMode, handle)),
        persistence=_switch(_ask(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)),
        other_processes=None if processes is None else len(processes),
    )


def _ask(nvml: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    # A question that this board or driver does not know is no reason to give up on the rest.
    try:
        return question(*arguments)
    except nvml.NVMLError:
        return None


def _switch(value: Any) -> bool | None:
    current = value[0] if isinstance(value, list | tuple) else value
    return None if current is None else bool(current)


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _by_command(problem: str) -> GpuSurvey:
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=True
        )
    except FileNotFoundError:
        return GpuSurvey(problem=f"{problem}; nvidia-smi is not there either")
    except (OSError, subprocess.SubprocessError) as error:
        return GpuSurvey(problem=f"{problem}; nvidia-smi failed: {error}")
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    gpus = tuple(_from_row(row) for row in rows if len(row) == 6 and row[0].isdigit())
    driver = rows[0][4] if gpus else None
    return GpuSurvey(gpus, driver, None, "nvidia-smi", problem if not gpus else None)


def _from_row(row: list[str]) -> Gpu:
    memory = int(row[3]) << 20 if row[3].isdigit() else None
    return Gpu(int(row[0]), row[1], row[2], memory, row[5] or None)
