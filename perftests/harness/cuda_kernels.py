"""The harness's own device code: empty, spin, hold, copies; launched through CuPy.

These are yardsticks and timing aids, never what is measured. They are compiled once for each
device by CuPy, which caches them on disk.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from perftests.harness.errors import UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable

_SOURCE = r"""
extern "C" {

__global__ void bw_empty() {}

__device__ unsigned long long bw_now() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The next step of the timer, with the cycle counter beside it. Both ends of an interval are steps,
// so that neither the timer's coarseness nor what the end waited for is in the cycles alone.
__device__ unsigned long long bw_step(long long* cycles) {
    unsigned long long before = bw_now(), now;
    do {
        now = bw_now();
        *cycles = clock64();
    } while (now == before);
    return now;
}

// Holds the stream for `ns` nanoseconds and notes how many cycles that took: the clock.
__global__ void bw_spin(unsigned long long ns, unsigned long long* log) {
    long long first, last;
    unsigned long long begin = bw_step(&first), end;
    while (bw_now() - begin < ns) {
    }
    end = bw_step(&last);
    if (log) {
        log[0] = static_cast<unsigned long long>(last - first);
        log[1] = end - begin;
    }
}

// Holds the stream until the host's word is at least `number`, or for `ns` nanoseconds. A look at
// the word takes a microsecond.
__global__ void bw_hold(volatile int* word, int number, unsigned long long ns) {
    unsigned long long begin = bw_now();
    while (*word < number && bw_now() - begin < ns) {
    }
}

__global__ void bw_copy1(const uint4* __restrict__ in, uint4* __restrict__ out, long long n) {
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < n) out[i] = in[i];
}

__global__ void bw_copy4(const uint4* __restrict__ in, uint4* __restrict__ out, long long n) {
    long long base = blockIdx.x * 4LL * blockDim.x + threadIdx.x;
    uint4 kept[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        long long i = base + k * static_cast<long long>(blockDim.x);
        if (i < n) kept[k] = in[i];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        long long i = base + k * static_cast<long long>(blockDim.x);
        if (i < n) out[i] = kept[k];
    }
}

__global__ void bw_add1(const float4* __restrict__ a, const float4* __restrict__ b,
                        float4* __restrict__ out, long long n) {
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    float4 x = a[i], y = b[i];
    out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

}  // extern "C"
"""
_BLOCK = 256
_VECTOR_BYTES = 16
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_*, CUDA driver API, cuLaunchKernel


def import_cupy() -> Any:
    """Return CuPy, or raise UnfitError that says what to install."""
    try:
        import cupy as cp
    except ImportError as error:
        raise UnfitError(
            f"cannot time on a GPU: CuPy is missing ({error}); install it: "
            "pip install cupy-cuda13x (for CUDA 12: cupy-cuda12x)"
        ) from None
    return cp


class DeviceKernels:
    """The compiled kernels. All launch on CuPy's current stream; sizes are in bytes."""

    def __init__(self) -> None:
        module = import_cupy().RawModule(code=_SOURCE, options=("-std=c++17",))
        self._empty = module.get_function("bw_empty")
        self._spin = module.get_function("bw_spin")
        self._copies = {
            1: module.get_function("bw_copy1"),
            4: module.get_function("bw_copy4"),
        }
        self._add = module.get_function("bw_add1")
        self._hold = module.get_function("bw_hold")

    def empty(self) -> None:
        """Launch a kernel that does nothing."""
        self._empty((1,), (1,), ())

    def spin(self, nanoseconds: int, log: int = 0) -> None:
        """Hold the stream; write cycles and nanoseconds to the two words at address `log`."""
        self._spin((1,), (1,), (np.uint64(nanoseconds), np.uint64(log)))

    def holder(self, word: int, longest_ns: int) -> Callable[[int, int], None]:
        """Return a launch of `bw_hold`: its number and the stream's handle.

        The hold ends when the word at the address `word` is at least the number, or after
        `longest_ns`. A host that is slow enqueues one before every launch that it times: so the
        arguments are packed here, and the driver gets them as they lie.
        """
        function, launch = self._hold.kernel.ptr, import_cupy().cuda.driver.launchKernel
        layout = struct.Struct("@PiQ")
        buffer = ctypes.create_string_buffer(layout.size)
        size = ctypes.c_size_t(layout.size)
        extra = (ctypes.c_void_p * 5)(
            _BUFFER, ctypes.addressof(buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        where, pack = ctypes.addressof(extra), layout.pack_into
        kept = (buffer, size, extra)

        def hold(number: int, stream: int, _kept: object = kept) -> None:
            pack(buffer, 0, word, number, longest_ns)
            launch(function, 1, 1, 1, 1, 1, 1, 0, stream, 0, where)

        return hold

    def copy(self, source: int, target: int, size: int, *, vectors: int = 1) -> None:
        """Copy `size` bytes between addresses, one or four 16-byte vectors a thread."""
        count = size // _VECTOR_BYTES
        blocks = -(-count // (_BLOCK * vectors))
        arguments = (np.uint64(source), np.uint64(target), np.int64(count))
        self._copies[vectors]((blocks,), (_BLOCK,), arguments)

    def add(self, left: int, right: int, target: int, size: int) -> None:
        """Add two float arrays of `size` bytes each: two reads, one write."""
        count = size // _VECTOR_BYTES
        blocks = -(-count // _BLOCK)
        arguments = (np.uint64(left), np.uint64(right), np.uint64(target), np.int64(count))
        self._add((blocks,), (_BLOCK,), arguments)
