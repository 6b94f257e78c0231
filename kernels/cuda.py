"""Implementations from our own CUDA sources: a CUBIN on a GPU, the same source by g++ on a CPU."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kernels import build, host
from kernels.definition import Definition
from kernels.implementation import Implementation
from kernels.tiling import THREADS, tile

SUFFIX = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.uint8: "u8",
}
Function = Callable[..., None]  # launch.Function or host.Function: (blocks, *values, shared_bytes=)


def get_function(
    source: Path,
    name: str,
    layout: str,
    device_index: int,
    threads: int = THREADS,
    shared_bytes: int = 0,
) -> Function:
    """Return kernel `name` of a source on a device, -1 being the CPU: compiled and loaded once."""
    if device_index < 0:
        return host.library(source).function(name, layout, threads)
    from kernels import launch

    return launch.module(source, device_index).function(name, layout, threads, shared_bytes)


class CudaImplementation(Implementation):
    """A kernel of a .cu file. A subclass chooses the function, the blocks and the arguments."""

    def __init__(
        self,
        definition: Definition,
        name: str,
        source: Path,
        dtypes: Sequence[torch.dtype] | None = None,
    ) -> None:
        super().__init__(definition, name, source, dtypes)
        self.source = source
        self._functions: dict[tuple[Any, ...], Function] = {}

    def unavailable(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return in one line why this cannot run on `device` with `dtype`, or None when it can."""
        reason = super().unavailable(device, dtype)
        if reason:
            return reason
        if device.type == "cpu":
            return None if host.compiler() else "g++ is not installed: no CPU run of CUDA sources"
        from kernels import launch

        try:
            launch.arch_of(launch.index_of(device))
        except build.BuildError as error:
            return str(error)
        return launch.missing()

    def fingerprint(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return the digest of the CUBIN that runs on a GPU; None where none does."""
        if device.type != "cuda" or self.unavailable(device, dtype):
            return None
        from kernels import launch

        return launch.module(self.source, launch.index_of(device)).cubin.fingerprint

    def first_call(self, device: torch.device) -> dict[str, float | None]:
        """Return what the first call cost in seconds: compiling (None when cached) and loading."""
        if device.type != "cuda":
            return {"compile_s": None, "load_s": None}
        from kernels import launch

        module = launch.module(self.source, launch.index_of(device))
        return {"compile_s": module.cubin.compile_s, "load_s": module.load_s}

    def _function(
        self, name: str, layout: str, device_index: int, threads: int = THREADS
    ) -> Function:
        """Return a kernel of the source, remembered for the next call."""
        key = (name, device_index)
        found = self._functions.get(key)
        if found is None:
            found = get_function(self.source, name, layout, device_index, threads)
            self._functions[key] = found
        return found

    @abstractmethod
    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        """Write `out`; the arguments have been checked."""


class CudaScalar(CudaImplementation):
    """A thread an element: `<kernel>_scalar_<dtype>(inputs..., out, n, parameters...)`."""

    def __init__(
        self,
        definition: Definition,
        source: Path,
        name: str = "cuda_scalar",
        symbol: str = "scalar",
        layout: str = "",
        dtypes: Sequence[torch.dtype] | None = None,
        per_thread: int = 1,
    ) -> None:
        super().__init__(definition, name, source, dtypes)
        self._symbol = f"{definition.name}_{symbol}"
        self._layout = "P" * (len(definition.inputs) + 1) + "q" + layout
        self._per_block = THREADS * per_thread

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        n = out.numel()
        name = f"{self._symbol}_{SUFFIX[out.dtype]}"
        function = self._function(name, self._layout, out.get_device())
        values = [parameters.get(k, default) for k, default in self.definition.parameters.items()]
        pointers = [tensor.data_ptr() for tensor in inputs]
        function(-(-n // self._per_block), *pointers, out.data_ptr(), n, *values)


class CudaVector(CudaImplementation):
    """16-byte accesses, head, body and tail in one launch, whatever the alignment.

    Kernels `<kernel>_[shifted_]x<loads>_<dtype>(inputs..., out, n, shift, parameters...)` of
    `device/elementwise.cuh`; `tiling.py` chooses among them.
    """

    def __init__(
        self,
        definition: Definition,
        source: Path,
        *,
        loads: Sequence[int],
        shifted_loads: Sequence[int],
        layout: str = "",
    ) -> None:
        super().__init__(definition, "cuda_vector", source)
        self._loads, self._shifted_loads = tuple(loads), tuple(shifted_loads)
        self._layout = "P" * (len(definition.inputs) + 1) + "qI" + layout
        self._scalars = tuple(definition.parameters.items())
        # Function by (dtype, device index, shifted, loads): one lookup a call.
        self._ready: dict[tuple[torch.dtype, int, bool, int], Function] = {}

    def _prepare(self, key: tuple[torch.dtype, int, bool, int]) -> Function:
        dtype, index, shifted, loads = key
        name = f"{self.kernel}_{'shifted_' if shifted else ''}x{loads}_{SUFFIX[dtype]}"
        function = self._function(name, self._layout, index)
        self._ready[key] = function
        return function

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        pointers = [tensor.data_ptr() for tensor in inputs]
        target, n, dtype = out.data_ptr(), out.numel(), out.dtype
        shifted, loads, blocks, shift = tile(
            pointers, target, n, out.itemsize, self._loads, self._shifted_loads
        )
        key = (dtype, out.get_device(), shifted, loads)
        function = self._ready.get(key) or self._prepare(key)
        if self._scalars:
            values = [parameters.get(name, default) for name, default in self._scalars]
            function(blocks, *pointers, target, n, shift, *values)
        else:
            function(blocks, *pointers, target, n, shift)
