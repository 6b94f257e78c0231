"""Implementations from our own CUDA sources: a CUBIN on a GPU, the same source by g++ on a CPU."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from kernels import build, host
from kernels.cases import Scalar
from kernels.definition import Definition
from kernels.implementation import Implementation
from kernels.tiling import THREADS, tile

PLANS = 4096  # plans remembered by an implementation
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
        values = parameters.values()
        pointers = [tensor.data_ptr() for tensor in inputs]
        function(-(-n // self._per_block), *pointers, out.data_ptr(), n, *values)


class CudaPack(CudaImplementation):
    """A pack of elements a thread, as articles have it.

    Kernels `<kernel>_<pack>_<dtype>(inputs..., out, n)`.

    A pack is one access, so its pointers must be aligned to it: when one is not, the whole launch
    falls back to a lone element a thread, as frameworks do. That cliff is what it is kept to show.
    """

    def __init__(
        self,
        definition: Definition,
        source: Path,
        pack: str,
        elements: int,
        dtypes: Sequence[torch.dtype],
        single: str,
    ) -> None:
        super().__init__(definition, f"cuda_{pack}", source, dtypes)
        self._pack, self._single, self._elements = pack, single, elements
        self._layout = "P" * (len(definition.inputs) + 1) + "q"

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, _parameters: Mapping[str, Any]
    ) -> None:
        pointers = [tensor.data_ptr() for tensor in (*inputs, out)]
        width = self._elements * out.itemsize
        # Only a power of two is one access: three floats are three, aligned wherever a float is.
        aligned = width & (width - 1) or not any(pointer % width for pointer in pointers)
        pack, elements = (self._pack, self._elements) if aligned else (self._single, 1)
        name = f"{self.kernel}_{pack}_{SUFFIX[out.dtype]}"
        n = out.numel()
        function = self._function(name, self._layout, out.get_device())
        function(-(-n // (THREADS * elements)), *pointers, n)


class CudaVector(CudaImplementation):
    """16-byte accesses; head, body and tail in one launch, whatever the alignment.

    Kernels `<symbol>_[shifted_]x<loads>_<suffix>(inputs..., out, n, shift, extra...)` of
    `device/elementwise.cuh`; `tiling.py` chooses among them. A subclass may name another symbol,
    suffix or extra arguments for a call.
    """

    def __init__(
        self,
        definition: Definition,
        source: Path,
        *,
        loads: Sequence[int],
        shifted_loads: Sequence[int],
        layout: str = "",
        data_inputs: int | None = None,
    ) -> None:
        super().__init__(definition, "cuda_vector", source)
        self._loads, self._shifted_loads = tuple(loads), tuple(shifted_loads)
        self._data = len(definition.inputs) if data_inputs is None else data_inputs
        self._layout = "P" * (self._data + 1) + "qI" + layout
        self._allowed = frozenset(self.dtypes)
        # Addresses repeat from call to call, so their plan is remembered: it would be a fifth of
        # what a launch costs the host.
        self._plan = lru_cache(PLANS)(self._make_plan)

    def _make_plan(
        self, symbol: str, suffix: str, n: int, index: int, sizes: tuple[int, int], *addresses: int
    ) -> tuple[Function, int, int]:
        """Return the function, its blocks and the elements of the first tile before the output."""
        *inputs, output = addresses
        shifted, loads, blocks, shift = tile(
            inputs, output, n, sizes, self._loads, self._shifted_loads
        )
        name = f"{symbol}_{'shifted_' if shifted else ''}x{loads}_{suffix}"
        return self._function(name, self._layout, index), blocks, shift

    def _symbol(
        self,
        inputs: Sequence[torch.Tensor],  # noqa: ARG002 - for subclasses
        out: torch.Tensor,
        parameters: Mapping[str, Any],  # noqa: ARG002 - for subclasses
    ) -> tuple[str, str]:
        """Return the start and the end of the function's name."""
        return self.kernel, SUFFIX[out.dtype]

    def _extra(
        self,
        inputs: Sequence[torch.Tensor],  # noqa: ARG002 - for subclasses
        parameters: Mapping[str, Any],
    ) -> Iterable[Any]:
        """Return the arguments after the common ones."""
        return parameters.values()

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        addresses = [tensor.data_ptr() for tensor in inputs[: self._data]]
        addresses.append(out.data_ptr())
        n = out.numel()
        symbol, suffix = self._symbol(inputs, out, parameters)
        sizes = (inputs[0].itemsize, out.itemsize)
        function, blocks, shift = self._plan(symbol, suffix, n, out.get_device(), sizes, *addresses)
        function(blocks, *addresses, n, shift, *self._extra(inputs, parameters))


class ElementwiseVector(CudaVector):
    """The vector form of a kernel whose inputs and output are alike, with a short way to launch it.

    The checks are those of every implementation, written out: on a GPU the host's part of a small
    launch is longer than the kernel. Whatever is unusual goes the common way, which explains.
    """

    def __call__(self, *inputs: Any, out: Any = None, **parameters: Scalar) -> Any:
        """Compute the kernel and return `out`, or a new tensor of the first input's kind."""
        if type(out) is not torch.Tensor or torch.compiler.is_compiling():
            return super().__call__(*inputs, out=out, **parameters)
        dtype, index, shape = out.dtype, out.get_device(), out.shape
        output, n = out.data_ptr(), out.numel()
        size = n * dtype.itemsize
        addresses = []
        for tensor in inputs:
            if (
                type(tensor) is not torch.Tensor
                or tensor.dtype is not dtype
                or tensor.get_device() != index
                or tensor.shape != shape
                or not tensor.is_contiguous()
            ):
                break
            address = tensor.data_ptr()  # 0 on the meta device, which has no memory
            if 0 < abs(address - output) < size or not address:
                break
            addresses.append(address)
        if (
            len(addresses) != self._arity
            or len(inputs) != self._arity
            or not n
            or not output
            or dtype not in self._allowed
            or not out.is_contiguous()
        ):
            return super().__call__(*inputs, out=out, **parameters)
        addresses.append(output)
        function, blocks, shift = self._plan(
            self.kernel, SUFFIX[dtype], n, index, (dtype.itemsize, dtype.itemsize), *addresses
        )
        if self._defaults or parameters:
            values = self._complete(parameters).values()
            function(blocks, *addresses, n, shift, *values)
        else:
            function(blocks, *addresses, n, shift)
        return out
