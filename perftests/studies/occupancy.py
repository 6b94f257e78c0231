"""How many blocks of a kernel an SM holds: from the driver, or from registers by its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_NUM_REGS = 4
"""CU_FUNC_ATTRIBUTE_NUM_REGS, CUDA driver API, CUfunction_attribute."""
REGISTERS, THREADS, BLOCKS = 65536, 2048, 32
"""What an SM of compute capability 8.0, 9.0 and 10.0 has (CUDA programming guide, table 30)."""
_WARP, _REGISTER_UNIT, _PARTS = 32, 256, 4


@dataclass(frozen=True)
class Residency:
    """Registers a thread and resident blocks an SM, with the threads of a block."""

    registers: int
    blocks: int
    threads: int

    @property
    def resident(self) -> int:
        """Threads that an SM holds."""
        return self.blocks * self.threads

    @property
    def occupancy(self) -> float:
        """Resident threads over the most that an SM holds."""
        return self.resident / THREADS


def estimated(registers: int, threads: int) -> Residency:
    """Return the residency by the rules, for a kernel without shared memory.

    Warps get registers in units of 256, from four parts of the SM (CUDA occupancy calculator,
    compute capability 8.0 to 10.0).
    """
    warps = -(-threads // _WARP)
    of_warp = -(-max(1, registers) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = REGISTERS // _PARTS // of_warp * _PARTS // warps
    return Residency(registers, min(BLOCKS, THREADS // threads, by_registers), threads)


def asked(code: bytes, name: str, threads: int) -> Residency:
    """Return the residency that the driver tells for a CUBIN's kernel on torch's current device."""
    import cupy
    import torch

    cupy.cuda.runtime.setDevice(torch.cuda.current_device())  # makes its context this thread's
    driver: Any = cupy.cuda.driver
    module = driver.moduleLoadData(code)
    try:
        handle = driver.moduleGetFunction(module, name)
        registers = int(driver.funcGetAttribute(_NUM_REGS, handle))
        blocks = int(driver.occupancyMaxActiveBlocksPerMultiprocessor(handle, threads, 0))
    finally:
        driver.moduleUnload(module)
    return Residency(registers, blocks, threads)
