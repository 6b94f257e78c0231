"""Implementations from our own CUDA sources: a CUBIN on a GPU, the same source by g++ on a CPU."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import torch

from kernels import build, first_call, host
from kernels.cases import Scalar
from kernels.definition import Definition
from kernels.implementation import Implementation
from kernels.tiling import PLAIN_THREADS, THREADS, tile

PLANS = 4096  # launches remembered by an implementation
SUFFIX = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.uint8: "u8",
}
_Tensor = torch.Tensor
_is_compiling = torch.compiler.is_dynamo_compiling  # of an export the tensors are no plain ones


class Function(Protocol):
    """A kernel on a device, ready to launch: `launch.Function` or `host.Function`."""

    def __call__(self, blocks: int, *values: Any) -> None:
        """Launch `blocks` blocks with `values`; pointers are integers."""

    def bind(self, blocks: int, *values: Any) -> Callable[[], None]:
        """Return that launch as a call that needs nothing more."""


def get_function(
    source: Path,
    name: str,
    layout: str,
    device_index: int,
    threads: int = THREADS,
) -> Function:
    """Return kernel `name` of a source on a device, -1 being the CPU: compiled and loaded once."""
    if device_index < 0:
        return host.library(source).function(name, layout, threads)
    from kernels import launch

    return launch.module(source, device_index).function(name, layout, threads)


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

    def _options(self, device: torch.device, dtype: torch.dtype) -> tuple[str, ...]:  # noqa: ARG002 - overridden
        """Return what the module for a dtype is compiled with beyond the usual options.

        Here nothing: all dtypes are in one module.
        """
        return ()

    def _module(self, device: torch.device, dtype: torch.dtype) -> Any:
        """Return the `launch.Module` of a dtype on a GPU."""
        from kernels import launch

        return launch.module(self.source, launch.index_of(device), self._options(device, dtype))

    def module_key(self, device: torch.device, dtype: torch.dtype) -> Hashable:
        """Return the source, its options and the device."""
        return self.source, self._options(device, dtype), device

    def prepare(self, device: torch.device, dtype: torch.dtype) -> None:
        """Compile and load the module."""
        if device.type == "cuda":
            self._module(device, dtype)
        else:
            host.library(self.source, self._options(device, dtype))

    def fingerprint(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return the digest of the CUBIN that runs on a GPU; None where none does."""
        if device.type != "cuda" or self.unavailable(device, dtype):
            return None
        return str(self._module(device, dtype).cubin.fingerprint)

    def first_call(self, call: Callable[[], object]) -> first_call.Parts:
        """Make the first call: the modules that it launches from tell compiling and loading."""
        return first_call.of_modules(call)

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


class RememberingImplementation(CudaImplementation):
    """A kernel whose launches are remembered by what they were called with.

    A call with the addresses, shapes, dtypes, devices and parameters of an earlier one passes the
    same checks and launches the same, so only contiguity is looked at again. On a GPU the host's
    part of a small launch is longer than the kernel; this halves ours. An output that is not given
    is allocated as the first was, whose address an allocator soon gives again.
    """

    def __init__(
        self,
        definition: Definition,
        name: str,
        source: Path,
        dtypes: Sequence[torch.dtype] | None = None,
    ) -> None:
        super().__init__(definition, name, source, dtypes)
        self._calls: dict[Any, Callable[[], None]] = {}
        self._outputs: dict[Any, tuple[torch.Size, torch.dtype, torch.device]] = {}

    def __call__(self, *inputs: Any, out: Any = None, **parameters: Scalar) -> Any:
        """Compute the kernel and return `out`, or a new tensor of the first input's kind."""
        if out is None and not _is_compiling():
            return self._allocating(inputs, parameters)
        if type(out) is not _Tensor or _is_compiling() or not out.is_contiguous():
            return super().__call__(*inputs, out=out, **parameters)
        key: Any = (out.data_ptr(), out.shape, out.dtype, out.get_device())
        for tensor in inputs:
            if type(tensor) is not _Tensor or not tensor.is_contiguous():
                return super().__call__(*inputs, out=out, **parameters)
            key = (key, tensor.data_ptr(), tensor.shape, tensor.dtype, tensor.get_device())
        if parameters:
            if 0 in parameters.values():  # a zero has a sign, which keys do not see
                return super().__call__(*inputs, out=out, **parameters)
            key = (key, *parameters.items())
        try:
            call = self._calls.get(key)
        except TypeError:  # a parameter that has no hash is none of ours
            call = None
        if call is None:
            return self._first(key, inputs, out, parameters)
        call()
        return out

    def _allocating(self, inputs: Sequence[Any], parameters: Mapping[str, Scalar]) -> Any:
        """Compute into a new output, the known one of such inputs or what the checks allocate."""
        key: Any = tuple(parameters.items())
        for tensor in inputs:
            if type(tensor) is not _Tensor or not tensor.is_contiguous():
                return super().__call__(*inputs, **parameters)
            key = (key, tensor.shape, tensor.dtype, tensor.get_device())
        try:
            known = self._outputs.get(key)
        except TypeError:  # a parameter that has no hash is none of ours
            known = None
        if known is not None:
            shape, dtype, device = known
            return self(*inputs, out=torch.empty(shape, dtype=dtype, device=device), **parameters)
        out = super().__call__(*inputs, **parameters)
        if len(self._outputs) >= PLANS:
            self._outputs.clear()
        self._outputs[key] = (out.shape, out.dtype, out.device)
        return out

    def _first(
        self,
        key: Any,
        inputs: Sequence[torch.Tensor],
        out: torch.Tensor,
        parameters: Mapping[str, Scalar],
    ) -> torch.Tensor:
        """Check, launch and remember a call on plain tensors."""
        if len(inputs) != self._arity:
            self._refuse_arity(inputs)
        target, complete = self._admitted(inputs, out, parameters)
        if target.numel():
            call = self._bind(inputs, target, complete)
            if len(self._calls) >= PLANS:
                self._calls.clear()
            self._calls[key] = call
            call()
        return target

    @abstractmethod
    def _bind(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> Callable[[], None]:
        """Return the launch for arguments that have been checked."""

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        self._bind(inputs, out, parameters)()


class CudaScalar(RememberingImplementation):
    """A thread an element: `<kernel>_scalar_<dtype>(inputs..., out, n)`."""

    def __init__(self, definition: Definition, source: Path) -> None:
        super().__init__(definition, "cuda_scalar", source)
        self._layout = "P" * (len(definition.inputs) + 1) + "q"

    def _bind(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, _parameters: Mapping[str, Any]
    ) -> Callable[[], None]:
        n = out.numel()
        name = f"{self.kernel}_scalar_{SUFFIX[out.dtype]}"
        function = self._function(name, self._layout, out.get_device(), PLAIN_THREADS)
        pointers = [tensor.data_ptr() for tensor in (*inputs, out)]
        return function.bind(-(-n // PLAIN_THREADS), *pointers, n)


class CudaPack(RememberingImplementation):
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

    def _bind(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, _parameters: Mapping[str, Any]
    ) -> Callable[[], None]:
        pointers = [tensor.data_ptr() for tensor in (*inputs, out)]
        width = self._elements * out.itemsize
        # Only a power of two is one access: three floats are three, aligned wherever a float is.
        aligned = width & (width - 1) or not any(pointer % width for pointer in pointers)
        pack, elements = (self._pack, self._elements) if aligned else (self._single, 1)
        name = f"{self.kernel}_{pack}_{SUFFIX[out.dtype]}"
        n = out.numel()
        function = self._function(name, self._layout, out.get_device(), PLAIN_THREADS)
        return function.bind(-(-n // (PLAIN_THREADS * elements)), *pointers, n)


class CudaVector(RememberingImplementation):
    """16-byte accesses; head, body and tail in one launch, whatever the alignment.

    Kernels `<symbol>_[shifted_]x<loads>_<suffix>(inputs..., out, n, before, edges, extra...)`
    of `device/elementwise.cuh`; `tiling.py` chooses among them: `loads`, for some input dtypes
    `loads_of`, and `shifted_loads` are the choices. A subclass may name another symbol,
    suffix or extra arguments for a call.
    """

    def __init__(
        self,
        definition: Definition,
        source: Path,
        *,
        loads: Sequence[int],
        shifted_loads: Sequence[int],
        loads_of: Mapping[torch.dtype, Sequence[int]] = MappingProxyType({}),
        layout: str = "",
        data_inputs: int | None = None,
    ) -> None:
        super().__init__(definition, "cuda_vector", source)
        self.loads, self.shifted_loads = tuple(loads), tuple(shifted_loads)
        self.loads_of = dict(loads_of)
        self._data = len(definition.inputs) if data_inputs is None else data_inputs
        self._layout = "P" * (self._data + 1) + "qII" + layout

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

    def _bind(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> Callable[[], None]:
        *sources, target = (t.data_ptr() for t in (*inputs[: self._data], out))
        n, sizes = out.numel(), (inputs[0].itemsize, out.itemsize)
        choices = self.loads_of.get(inputs[0].dtype, self.loads)
        cut = tile(sources, target, n, sizes, choices, self.shifted_loads)
        symbol, suffix = self._symbol(inputs, out, parameters)
        name = f"{symbol}_{'shifted_' if cut.shifted else ''}x{cut.loads}_{suffix}"
        function = self._function(name, self._layout, out.get_device(), cut.threads)
        extra = self._extra(inputs, parameters)
        return function.bind(cut.blocks, *sources, target, n, cut.before, cut.edges, *extra)
