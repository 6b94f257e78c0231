"""Which device `pytest --benchmark` would measure, and what stands in its way."""

from collections.abc import Iterable
from dataclasses import dataclass

from tracker.doctor.devices import Gpu, GpuSurvey
from tracker.doctor.finding import Finding, Level
from tracker.doctor.packages import Torch, install_command

AREA = "device"


@dataclass(frozen=True, slots=True)
class Plan:
    """The device that would be measured, in words; None when nothing can be."""

    device: str | None
    findings: tuple[Finding, ...]


def plan(survey: GpuSurvey, torch: Torch, cpu: str) -> Plan:
    """Return what would be measured: the GPU when torch can use it, else the CPU."""
    findings = [*_gpus(survey), _torch(survey, torch)]
    if torch.problem is not None:
        return Plan(None, tuple(findings))
    if survey.gpus and torch.available:
        return Plan(f"the GPU {survey.gpus[0].name}", tuple(findings))
    why = "no NVIDIA GPU" if not survey.gpus else "torch cannot use the GPU"
    findings.append(Finding(AREA, "CPU", Level.INFO, f"{cpu}; measured because: {why}"))
    return Plan(f"the CPU {cpu} ({why})", tuple(findings))


def _gpus(survey: GpuSurvey) -> Iterable[Finding]:
    if not survey.gpus:
        yield Finding(AREA, "GPU", Level.INFO, f"none: {survey.problem}")
        return
    supports = f", supports CUDA {survey.cuda}" if survey.cuda else ""
    yield Finding(AREA, "driver", Level.OK, f"{survey.driver}{supports} (from {survey.source})")
    for gpu in survey.gpus:
        yield Finding(AREA, f"GPU {gpu.index}", Level.OK, _described(gpu))
        if gpu.other_processes:
            found = f"{gpu.other_processes} other processes compute on GPU {gpu.index}"
            fix = "stop them: times measured beside them are no baseline"
            yield Finding(AREA, f"GPU {gpu.index} users", Level.WARN, found, fix)
        if gpu.persistence is False:
            fix = f"sudo nvidia-smi -i {gpu.index} -pm 1"
            found = "off: the driver starts anew for each process, clocks begin low"
            yield Finding(AREA, f"GPU {gpu.index} persistence mode", Level.WARN, found, fix)


def _described(gpu: Gpu) -> str:
    parts = [gpu.name, gpu.uuid]
    if gpu.memory_bytes:
        parts.append(f"{gpu.memory_bytes / 2**30:.0f} GiB")
    if gpu.compute_capability:
        parts.append(f"sm_{gpu.compute_capability.replace('.', '')}")
    if gpu.power_limit_w:
        parts.append(f"power limit {gpu.power_limit_w:.0f} W")
    for name, switch in (("ECC", gpu.ecc), ("MIG", gpu.mig)):
        if switch is not None:
            parts.append(f"{name} {'on' if switch else 'off'}")
    return ", ".join(parts)


def _torch(survey: GpuSurvey, torch: Torch) -> Finding:
    if torch.problem is not None:
        fix = install_command("measure")
        return Finding(AREA, "torch", Level.FAIL, f"cannot be used: {torch.problem}", fix)
    build = f"{torch.version}, CUDA {torch.cuda}" if torch.cuda else f"{torch.version}, CPU only"
    if survey.gpus and not torch.available:
        fix = "install a CUDA build of torch that the driver supports, then run bandwatch doctor"
        found = f"{build}: cannot use the GPU, so the CPU would be measured"
        return Finding(AREA, "torch", Level.WARN, found, fix)
    return Finding(AREA, "torch", Level.OK, build)
