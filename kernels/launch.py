"""CUBIN to launch: through CuPy's driver layer, on torch's current stream of the tensors' device.

A launch hands the driver the address of one buffer with all arguments. It is packed at the call
(into a buffer that each thread keeps for each kernel) or once for all repetitions (`bind`): the
host's part is then little more than the driver's own. Nothing is allocated, nothing waits, and a
launch can be captured into a CUDA graph once its module is loaded.
"""

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from kernels.build import Cubin, arch_for, compile_cubin
from kernels.first_call import announce

_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_*, CUDA driver API, cuLaunchKernel


@cache
def _cupy() -> Any:
    import cupy

    return cupy


def missing() -> str | None:
    """Return why nothing can be launched in this environment, or None."""
    try:
        _cupy()
    except ImportError:
        return "CuPy is not installed: pip install cupy-cuda13x (for CUDA 12: cupy-cuda12x)"
    return None


def _stream_getter() -> Any:
    """Return the cheapest way to torch's current stream: a raw handle by device index."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 - Triton and Inductor rely on it too
    return raw or (lambda index: torch.cuda.current_stream(index).cuda_stream)


current_stream = _stream_getter()
current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)  # noqa: SLF001 - without the lazy-init check


def give_context(device_index: int) -> None:
    """Make the device's context this thread's: one that never touched CUDA has none."""
    _cupy().cuda.runtime.setDevice(device_index)


class _Buffer:
    """A kernel's arguments in memory; `address` is what the driver takes for them."""

    def __init__(self, size: int) -> None:
        self.buffer = ctypes.create_string_buffer(size)
        self._size = ctypes.c_size_t(size)
        self._extra = (ctypes.c_void_p * 5)(
            _BUFFER, ctypes.addressof(self.buffer), _BUFFER_SIZE, ctypes.addressof(self._size), _END
        )
        self.address = ctypes.addressof(self._extra)


class _Arguments(threading.local, _Buffer):
    """A kernel's argument buffer, one a thread: threads that launch at once never mix arguments."""

    def __init__(self, size: int, device_index: int) -> None:
        give_context(device_index)
        super().__init__(size)


class Function:
    """One kernel on one device, ready to launch."""

    __slots__ = ("_arguments", "_device_index", "_handle", "_launch", "_pack", "_size", "_threads")

    def __init__(self, handle: int, layout: str, threads: int, device_index: int) -> None:
        layout_struct = struct.Struct(f"@{layout}")
        self._handle = handle
        self._launch = _cupy().cuda.driver.launchKernel
        self._pack = layout_struct.pack_into
        self._size = layout_struct.size
        self._arguments = _Arguments(self._size, device_index)
        self._threads = threads
        self._device_index = device_index

    def __call__(self, blocks: int, *values: Any) -> None:
        """Launch `blocks` blocks on torch's current stream of the device; pointers are integers."""
        index = self._device_index
        if current_device() != index:
            with torch.cuda.device(index):
                return self(blocks, *values)
        arguments = self._arguments
        self._pack(arguments.buffer, 0, *values)
        self._launch(
            self._handle, blocks, 1, 1, self._threads, 1, 1, 0,
            current_stream(index), 0, arguments.address,
        )  # fmt: skip
        return None

    def bind(self, blocks: int, *values: Any) -> Callable[[], None]:
        """Return the launch with its arguments packed: a call that needs nothing more."""
        kept = _Buffer(self._size)
        self._pack(kept.buffer, 0, *values)
        launch, handle, threads, index = (
            self._launch, self._handle, self._threads, self._device_index,
        )  # fmt: skip
        where = kept.address

        def call(_kept: _Buffer = kept) -> None:
            if current_device() != index:
                with torch.cuda.device(index):
                    call()
                return
            stream = current_stream(index)
            try:
                launch(handle, blocks, 1, 1, threads, 1, 1, 0, stream, 0, where)
            except RuntimeError:
                # Without a context the driver refuses; asking for it before costs every launch.
                give_context(index)
                launch(handle, blocks, 1, 1, threads, 1, 1, 0, stream, 0, where)

        return call


class Module:
    """A CUBIN loaded on one device, with the times of `first_call.Loaded`."""

    def __init__(self, cubin: Cubin, device_index: int) -> None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"cannot load {cubin.source.parent.name} while a CUDA graph is being captured; "
                "call the implementation once before the capture"
            )
        self.cubin = cubin
        self._device_index = device_index
        with torch.cuda.device(device_index):
            self.since = perf_counter()
            _cupy().cuda.runtime.setDevice(device_index)
            self._module = _cupy().cuda.driver.moduleLoadData(cubin.code)
            self.load_s = perf_counter() - self.since

    @property
    def code_s(self) -> float:
        """Seconds until the machine code was there, compiled or found."""
        return self.cubin.code_s

    @property
    def compile_s(self) -> float | None:
        """Seconds in the compiler, None when the machine code was found."""
        return self.cubin.compile_s

    def function(self, name: str, layout: str, threads: int) -> Function:
        """Return kernel `name`; `layout` is its parameter list as `struct` format characters."""
        with torch.cuda.device(self._device_index):
            began = perf_counter()
            handle = _cupy().cuda.driver.moduleGetFunction(self._module, name)
            announce(self, perf_counter() - began)
            # Inside: it asks for the device's context, and another device may be the caller's.
            return Function(handle, layout, threads, self._device_index)


def index_of(device: torch.device) -> int:
    """Return a CUDA device's index; a bare "cuda" is the current one."""
    index: int | None = device.index
    return torch.cuda.current_device() if index is None else index


@cache
def arch_of(device_index: int) -> str:
    """Return the architecture that a device runs, such as "sm_90"."""
    return arch_for(torch.cuda.get_device_capability(device_index))


def module(source: Path, device_index: int, extra: Sequence[str] = ()) -> Module:
    """Return a source's module on a device: compiled once on disk, loaded once a process."""
    return _module(source, device_index, tuple(extra))


@cache
def _module(source: Path, device_index: int, extra: tuple[str, ...]) -> Module:
    return Module(compile_cubin(source, arch_of(device_index), extra), device_index)
