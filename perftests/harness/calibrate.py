"""The yardsticks beside each result: copies of the same size, the empty launch, the data sheet.

Copies are measured in the same session and cache mode as the results they stand beside, once for
each size. The copy is the faster of the driver's and plain kernels: the driver's alone falls by a
tenth at some sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import floor, log2
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from perftests.harness.arena import scattered
from perftests.harness.sampling import Runner, collect, warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from perftests.harness.arena import Arena
    from perftests.harness.cuda import CudaDevice
    from perftests.harness.stop import StopRule

_STEPS_AN_OCTAVE = 6
"""Sizes that agree to 1 part in 2^6 share a calibration."""
_UNIT_BYTES = 512
_VECTOR_BYTES = 16
_DEVICE_TO_DEVICE = 3
_WARM_SECONDS = 0.002
_WARM_CAP_SECONDS = 0.2
_SMALLEST_RULE_SECONDS = 0.03
_FP32_LANES = {
    (7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128,
    (9, 0): 128, (10, 0): 128, (10, 3): 128, (11, 0): 128, (12, 0): 128, (12, 1): 128,
}  # fmt: skip
"""fp32 units a multiprocessor, by compute capability (CUDA programming guide, table 27)."""


class Yardsticks(Protocol):
    """What a device offers to calibrate with."""

    kind: str

    @property
    def arena(self) -> Arena:
        """Where buffers are taken from."""

    def runner(self, mode: str, launches: Sequence[Callable[[], object]]) -> Runner:
        """Return the timer of a cache mode."""

    def sets_needed(self, mode: str, set_bytes: int) -> int:
        """Return how many buffer sets a mode rotates through."""

    def stream(self) -> object:
        """Return a context that makes the launch stream current."""


@dataclass(frozen=True)
class Peaks:
    """Rates in bytes per second and FLOP per second, `floor_s` in seconds."""

    theoretical_bytes_per_s: float | None = None
    copy_bytes_per_s: float | None = None
    copy_source: str | None = None
    two_read_bytes_per_s: float | None = None
    theoretical_flop_per_s: float | None = None
    floor_s: float | None = None


def round_size(size_bytes: int) -> int:
    """Return the size that a calibration is made at: within 1 % and a multiple of 512 bytes."""
    step = 1 << max(0, floor(log2(max(1, size_bytes))) - _STEPS_AN_OCTAVE)
    step = max(step, _UNIT_BYTES)
    return max(_UNIT_BYTES, round(size_bytes / step) * step)


class Calibrator:
    """Measures each yardstick once for each size and cache mode of a session."""

    def __init__(self, device: Yardsticks, rule: StopRule) -> None:
        self._device = device
        self._rule = replace(
            rule,
            target=2 * rule.target,
            resolution_s=2 * rule.resolution_s,
            max_seconds=max(rule.max_seconds / 3, _SMALLEST_RULE_SECONDS),
        )
        self._known: dict[tuple[str, int, str], tuple[float, str]] = {}

    def copy(self, total_bytes: int, mode: str) -> tuple[float, str]:
        """Return bytes per second of a copy moving `total_bytes` in all, and who was fastest."""
        return self._once("copy", total_bytes, mode, 2)

    def two_read(self, total_bytes: int, mode: str) -> float:
        """Return bytes per second of a sum of two arrays that moves `total_bytes` in all."""
        return self._once("two_read", total_bytes, mode, 3)[0]

    def floor_s(self, mode: str) -> float:
        """Return the seconds that an empty launch shows by the same timer."""
        key = ("floor", 0, mode)
        if key not in self._known:
            # as many as the smallest case has places, so that it meets as many streams
            places = self._device.sets_needed(mode, 1) if mode == "cold" else 1
            launches = [self._empty()] * places
            self._known[key] = self._median(self._device.runner(mode, launches)), "empty"
        return self._known[key][0]

    def _once(self, what: str, total_bytes: int, mode: str, arrays: int) -> tuple[float, str]:
        each = round_size(total_bytes // arrays)
        key = (what, each, mode)
        if key not in self._known:
            self._known[key] = self._fastest(what, each, mode, arrays)
        return self._known[key]

    def _fastest(self, what: str, each: int, mode: str, arrays: int) -> tuple[float, str]:
        count = self._device.sets_needed(mode, arrays * each)
        with self._device.arena.region():
            rows = self._device.arena.rows(count * arrays, each)[:, :each].view(torch.float32)
            rows.uniform_()
            by_array = rows.view(arrays, count, -1)
            orders = zip(*(scattered(count, array) for array in range(arrays)), strict=True)
            sets = [[by_array[array, row] for array, row in enumerate(order)] for order in orders]
            rates = {
                name: arrays * each / self._median(self._device.runner(mode, launches))
                for name, launches in self._candidates(what, sets).items()
            }
        best = max(rates, key=lambda name: rates[name])
        return rates[best], best

    def _median(self, runner: Runner) -> float:
        warm_up(runner, floor_s=_WARM_SECONDS, cap_s=_WARM_CAP_SECONDS)
        return float(np.median(collect(runner, self._rule).seconds))

    def _empty(self) -> Callable[[], object]:
        kernels = getattr(self._device, "kernels", None)
        return kernels.empty if kernels is not None else lambda: None

    def _candidates(
        self, what: str, sets: list[list[torch.Tensor]]
    ) -> Mapping[str, list[Callable[[], object]]]:
        """Return the contenders by name, one launch for each buffer set."""
        if self._device.kind == "cuda":
            return _cuda_candidates(self._device, what, sets)  # type: ignore[arg-type]
        if what == "copy":
            arrays = [[array.numpy() for array in pair] for pair in sets]
            return {
                "torch copy_": [partial(b.copy_, a) for a, b in sets],
                "numpy copyto": [partial(np.copyto, b, a) for a, b in arrays],
            }
        return {"torch add": [partial(torch.add, a, b, out=c) for a, b, c in sets]}


def _cuda_candidates(
    device: CudaDevice, what: str, sets: list[list[torch.Tensor]]
) -> dict[str, list[Callable[[], object]]]:
    kernels = device.kernels
    addresses = [[array.data_ptr() for array in arrays] for arrays in sets]
    size = sets[0][0].numel() * sets[0][0].element_size()
    if what == "two_read":
        return {"kernel": [partial(kernels.add, a, b, c, size) for a, b, c in addresses]}
    return _copies(device, addresses, size)


def _copies(
    device: CudaDevice, addresses: list[list[int]], size: int
) -> dict[str, list[Callable[[], object]]]:
    kernels, memcpy = device.kernels, device.runtime.memcpyAsync

    def by_driver(source: int, target: int) -> None:
        stream = torch.cuda.current_stream(device.device).cuda_stream
        memcpy(target, source, size, _DEVICE_TO_DEVICE, stream)

    return {
        "driver": [partial(by_driver, source, target) for source, target in addresses],
        "kernel, 1 vector a thread": [
            partial(kernels.copy, source, target, size, vectors=1) for source, target in addresses
        ],
        "kernel, 4 vectors a thread": [
            partial(kernels.copy, source, target, size, vectors=4) for source, target in addresses
        ],
    }


def copy_launches(
    device: CudaDevice, source: torch.Tensor, target: torch.Tensor
) -> dict[str, Callable[[], object]]:
    """Return each contender's copy of as many whole vectors as both tensors have.

    Both begin on a boundary of 16 bytes; the caller keeps them.
    """
    size = min(source.nbytes, target.nbytes) // _VECTOR_BYTES * _VECTOR_BYTES
    addresses = [[source.data_ptr(), target.data_ptr()]]
    return {name: one for name, (one,) in _copies(device, addresses, size).items()}


def theoretical_bandwidth(memory_clock_hz: float, bus_width_bits: int) -> float:
    """Return bytes per second of double-data-rate memory: two transfers a clock on each line."""
    return 2 * memory_clock_hz * bus_width_bits / 8


def theoretical_flops(
    capability: tuple[int, int], multiprocessors: int, sm_clock_hz: float
) -> float | None:
    """Return fp32 FLOP per second with fused multiply-adds, None for an unknown architecture."""
    lanes = _FP32_LANES.get(capability)
    return None if lanes is None else 2.0 * lanes * multiprocessors * sm_clock_hz
