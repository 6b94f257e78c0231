"""The CPU's stand-in for a GPU: threads that meet, shuffles, shared memory, launches."""

import ctypes
import subprocess
import sys

import pytest
import torch

from kernels import host

SOURCE = r"""
#include "prelude.cuh"

// Reverses each block through shared memory: every thread needs what another wrote.
COOPERATIVE_KERNEL(256, reverse, (const int* x, int* y)) {
    __shared__ int tile[256];
    tile[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}
// Sums a warp by halving; lane 0 has the sum, and all have it by the exchange.
COOPERATIVE_KERNEL(96, sums, (const int* x, int* down, int* across)) {
    const int i = blockIdx.x * 96 + threadIdx.x;
    int v = x[i], w = v;
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    for (int d = 16; d; d /= 2) w += __shfl_xor_sync(0xffffffffu, w, d);
    down[i] = v, across[i] = w;
}
COOPERATIVE_KERNEL(64, neighbours, (const float* x, float* left, float* first)) {
    left[threadIdx.x] = __shfl_up_sync(0xffffffffu, x[threadIdx.x], 1);
    first[threadIdx.x] = __shfl_sync(0xffffffffu, x[threadIdx.x], 0, 8);
}
// Threads past the end leave before the barrier, as on a GPU.
COOPERATIVE_KERNEL(128, leavers, (int* y, int n)) {
    __shared__ int tile[128];
    if (static_cast<int>(threadIdx.x) >= n) return;
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = tile[n - 1 - threadIdx.x];
}
COOPERATIVE_KERNEL(64, deadlock, (int* y)) {
    if (threadIdx.x < 32) __syncthreads();
    else __syncwarp();
    if (threadIdx.x >= 32) while (!y[0]) __syncwarp();
}
COOPERATIVE_KERNEL(64, half_of_a_warp, (int* y)) {
    if (threadIdx.x % 2) __syncthreads();
    else y[0] = __shfl_sync(0xffffffffu, 1, 0);
}
KERNEL(32, undeclared, (int* y)) { __syncthreads(); y[0] = 1; }
KERNEL(64, shape, (unsigned* y)) {
    y[blockIdx.x * blockDim.x + threadIdx.x] = gridDim.x * 1000 + blockDim.x;
}
KERNEL(1, arguments, (char a, double b, int c, const double* d, float e, double* y)) {
    y[0] = a, y[1] = b, y[2] = c, y[3] = *d, y[4] = e;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> host.Library:
    path = tmp_path_factory.mktemp("host") / "cuda.cu"
    path.write_text(SOURCE)
    return host.Library(path)


def ints(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.int32)


@pytest.mark.parametrize("blocks", [1, 3, 64])
def test_shared_memory_and_a_barrier(library: host.Library, blocks: int) -> None:
    x = ints(256 * blocks)
    y = torch.zeros_like(x)
    library.function("reverse", "PP", 256)(blocks, x.data_ptr(), y.data_ptr())
    assert torch.equal(y.view(blocks, 256), x.view(blocks, 256).flip(1))


def test_shuffles_down_and_across(library: host.Library) -> None:
    x = torch.randint(0, 100, (2 * 96,), dtype=torch.int32)
    down, across = torch.zeros(2, 192, dtype=torch.int32)
    library.function("sums", "PPP", 96)(2, x.data_ptr(), down.data_ptr(), across.data_ptr())
    sums = x.view(-1, 32).sum(1)
    assert torch.equal(down[::32].long(), sums)
    assert torch.equal(across.view(-1, 32).long(), sums[:, None].expand(-1, 32))


def test_shuffles_up_and_from_a_lane_of_a_part(library: host.Library) -> None:
    x = torch.randn(64)
    left, first = torch.zeros(2, 64)
    library.function("neighbours", "PPP", 64)(1, x.data_ptr(), left.data_ptr(), first.data_ptr())
    expected = x.roll(1)
    expected[::32] = x[::32]
    assert torch.equal(left, expected)
    assert torch.equal(first, x[::8].repeat_interleave(8))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 128])
def test_threads_that_left_do_not_count_at_a_barrier(library: host.Library, n: int) -> None:
    y = torch.full((128,), -1, dtype=torch.int32)
    library.function("leavers", "Pi", 128)(1, y.data_ptr(), n)
    assert torch.equal(y[:n], ints(n).flip(0))
    assert (y[n:] == -1).all()


@pytest.mark.parametrize(
    ("kernel", "threads", "message"),
    [
        ("half_of_a_warp", 64, "a barrier that not all of its threads reach"),
        ("undeclared", 32, "not declared COOPERATIVE_KERNEL"),
    ],
)
def test_what_would_hang_or_be_undefined_stops_with_a_message(
    library: host.Library, kernel: str, threads: int, message: str
) -> None:
    script = (
        "import ctypes, sys; from pathlib import Path; from kernels import host;"
        f"f = host.Library(Path(sys.argv[1])).function('{kernel}', 'P', {threads});"
        "b = (ctypes.c_int * 64)(); f(1, ctypes.addressof(b))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(library._source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode < 0
    assert message in done.stderr


def test_every_block_and_thread_knows_its_place(library: host.Library) -> None:
    y = torch.zeros(64 * 40, dtype=torch.int32)
    library.function("shape", "P", 64)(40, y.data_ptr())
    assert (y == 40 * 1000 + 64).all()


def test_arguments_arrive_as_packed(library: host.Library) -> None:
    d = ctypes.c_double(4.5)
    y = torch.zeros(5, dtype=torch.float64)
    call = library.function("arguments", "bdiPfP", 1)
    call(1, 7, 2.25, -3, ctypes.addressof(d), 0.5, y.data_ptr())
    assert y.tolist() == [7.0, 2.25, -3.0, 4.5, 0.5]


def test_a_kernel_that_is_not_there_is_refused(library: host.Library) -> None:
    with pytest.raises(ValueError, match="has no kernel nothing"):
        library.function("nothing", "P", 1)


@pytest.mark.parametrize("blocks", [1, 4096])
def test_the_first_launch_of_each_thread_is_as_right_as_later_ones(
    blocks: int, library: host.Library
) -> None:
    """A thread's storage is made at its first launch, which must leave the arguments alone."""
    script = (
        "import ctypes, sys, torch; from pathlib import Path; from kernels import host\n"
        "d, y, blocks = ctypes.c_double(4.5), torch.zeros(5, dtype=torch.float64), int(sys.argv[2])\n"
        "call = host.Library(Path(sys.argv[1])).function('arguments', 'bdiPfP', 16)\n"
        "call(blocks, 7, 2.25, -3, ctypes.addressof(d), 0.5, y.data_ptr())\n"
        "assert y.tolist() == [7.0, 2.25, -3.0, 4.5, 0.5], y"
    )
    command = [sys.executable, "-c", script, str(library._source), str(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
