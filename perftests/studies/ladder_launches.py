"""What a call launches: kernels by name with their times, as torch's profiler sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.studies.tables import Row

MOST_NAMES = 3
_TELLING = re.compile(r"\w*(?:gemm|gemv|Functor|functor|copy)\w*")
_LONGEST = 60


@dataclass(frozen=True)
class Launched:
    """One kernel that ran: its name and its seconds on the device."""

    name: str
    seconds: float


def launched(call: Callable[[], object], device: torch.device) -> list[Launched]:
    """Return the kernels that a call launches; copies and fills by the driver are left out."""
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize(device)
    return [
        Launched(event.name, event.time_range.elapsed_us() * 1e-6)
        for event in seen.events()
        if event.device_type == DeviceType.CUDA
        and not getattr(event, "is_user_annotation", False)
        and is_kernel(event.name)
    ]


def is_kernel(name: str) -> bool:
    """Whether a device-side event of the profiler, by its name, is a kernel."""
    return not name.startswith(("Memcpy", "Memset", "Context Sync", "Stream ", "Event "))


def summary(implementation: str, seen: Sequence[Launched]) -> list[Row]:
    """Return a row for each name, the longest in total first; [] for nothing seen."""
    whole = sum(one.seconds for one in seen)
    if not whole:
        return []
    groups: dict[str, list[float]] = {}
    for one in seen:
        groups.setdefault(short(one.name), []).append(one.seconds)
    longest = sorted(groups.items(), key=lambda item: -sum(item[1]))[:MOST_NAMES]
    return [
        {
            "implementation": implementation,
            "kernel": name,
            "launches": len(times),
            "time each": sum(times) / len(times),
            "of the call": sum(times) / whole,
        }
        for name, times in longest
    ]


def short(name: str) -> str:
    """Return a kernel's name without namespaces and arguments, of a template what it does."""
    plain = name.removeprefix("void ").split("(anonymous namespace)::")[-1]
    base = re.split(r"[<(]", plain)[0].split("::")[-1]
    telling = _TELLING.search(plain[plain.find(base) + len(base) :])
    text = f"{base}: {telling[0]}" if telling and not _TELLING.search(base) else base
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
