"""A first call in its parts: of what was compiled, loaded, found or at hand, and of which module."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch

from kernels import first_call, host, launch, registry
from kernels.build import Cubin
from kernels.cuda import CudaScalar
from kernels.first_call import (
    AT_HAND,
    CACHED,
    LAUNCHED,
    announce,
    of_modules,
)
from kernels.fused_transform import cuda_impl
from kernels.fused_transform.cuda_impl import default_types, host_options
from kernels.fused_transform.variants import Types

X = torch.tensor([-1.0, 2.0])
NOTHING_NEW = {"compile_s": AT_HAND, "load_s": AT_HAND, "launch_s": LAUNCHED}
SOURCE = r"""
#include "prelude.cuh"
KERNEL(256, relu_scalar_f32, (const float* x, float* y, i64 n)) {
    const i64 i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] <= 0 ? 0 : x[i];
}
"""


@dataclass(eq=False)
class Module:
    """What a launch takes its kernel from: its times are what is planted."""

    code_s: float
    load_s: float
    compile_s: float | None = None
    since: float = 0.0

    def function(self, *_: Any) -> Any:
        announce(self, 0.0)
        return lambda *_: None


@pytest.fixture
def scalar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaScalar]:
    """A ReLU of a source and a cache of its own."""
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cuda.cu").write_text(SOURCE)
    yield fresh(tmp_path / "cuda.cu")
    host._library.cache_clear()


def fresh(source: Path) -> CudaScalar:
    """Return the implementation as a new process has it."""
    host._library.cache_clear()
    known = registry.get("relu", "cuda_scalar")
    assert isinstance(known, CudaScalar)
    made = CudaScalar(known.definition, known.source)
    made.source = source
    return made


def test_on_a_cpu_compiling_and_loading_are_told_apart(scalar: CudaScalar) -> None:
    began = time.perf_counter()
    parts = scalar.first_call(lambda: scalar(X))
    took = time.perf_counter() - began
    assert parts.compile_s is not None
    assert parts.load_s is not None
    assert parts.code_s is not None
    assert parts.code_s >= parts.compile_s > 10 * parts.launch_s
    assert 0 < parts.load_s < parts.compile_s
    assert 0.9 * took < parts.code_s + parts.load_s + parts.launch_s <= took
    assert parts.told() == {
        "compile_s": parts.compile_s,
        "load_s": parts.load_s,
        "launch_s": parts.launch_s,
    }


def test_code_that_is_found_was_not_compiled(scalar: CudaScalar) -> None:
    compiled = scalar.first_call(lambda: scalar(X)).compile_s
    again = fresh(scalar.source)
    parts = again.first_call(lambda: again(X))
    assert str(parts.told()["compile_s"]).startswith(CACHED)
    assert compiled is not None
    assert parts.code_s is not None
    assert 0 < parts.code_s < compiled / 5


def test_what_was_prepared_beforehand_counts_and_is_no_part_of_the_launch(
    scalar: CudaScalar,
) -> None:
    scalar.prepare(torch.device("cpu"), torch.float32)
    parts = scalar.first_call(lambda: scalar(X))
    assert parts.compile_s is not None
    assert parts.load_s is not None
    assert 0 < parts.launch_s < parts.compile_s / 5


def test_a_call_that_takes_no_kernel_says_so(scalar: CudaScalar) -> None:
    scalar(X)
    parts = scalar.first_call(lambda: scalar(X))
    assert parts.told() == NOTHING_NEW
    assert parts.launch_s > 0  # the study of cold starts asks for it all the same


def test_on_a_cpu_another_shape_is_launched_from_what_is_at_hand(scalar: CudaScalar) -> None:
    assert isinstance(scalar.first_call(lambda: scalar(X)).told()["compile_s"], float)
    assert scalar.first_call(lambda: scalar(torch.zeros(131))).told() == NOTHING_NEW


def test_on_a_cpu_other_channels_are_compiled_and_told_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted recompilation: the fused transform has a module for each pair of channels."""
    host._library.cache_clear()
    known = registry.get("fused_transform", "cuda_scalar")
    assert isinstance(known, cuda_impl.FusedCuda)
    made = cuda_impl.FusedCuda(known.definition, "cuda_scalar", known.variants, known._choose)

    def told(pixels: int, transform: str, channels: int) -> dict[str, float | str]:
        x = torch.zeros(1, 1, pixels, channels)
        return made.first_call(lambda: made(x, transform=transform)).told()

    assert isinstance(told(33, "imagenet_ycbcr", 3)["load_s"], float)  # compiled or found
    assert told(65, "imagenet_ycbcr", 3) == NOTHING_NEW
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path))
    other = told(33, "four_bands", 4)
    assert all(isinstance(other[name], float) for name in ("compile_s", "load_s", "launch_s"))
    assert told(65, "four_bands", 4) == NOTHING_NEW
    host._library.cache_clear()


@pytest.mark.parametrize(
    ("dtype", "transform", "channels"),
    [
        (torch.float32, "imagenet_ycbcr", 3), (torch.float16, "imagenet_ycbcr", 3),
        (torch.uint8, "imagenet_ycbcr_255", 3), (torch.float32, "four_bands", 4),
        (torch.float32, "grey_bt601", 3),
    ],
)  # fmt: skip
def test_the_times_are_those_of_the_module_that_is_launched(
    dtype: torch.dtype, transform: str, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fused transform has a module for each pair of types and numbers of channels."""
    known = registry.get("fused_transform", "cuda_vector")
    assert isinstance(known, cuda_impl.FusedCuda)
    outputs = 1 if transform == "grey_bt601" else 3
    target = torch.float32 if dtype == torch.uint8 else dtype
    types = Types(dtype, target, channels, outputs)
    wanted = host_options(known.variants(types), types)
    usual = default_types(torch.float32)
    of_fp32 = host_options(known.variants(usual), usual)
    assert (wanted == of_fp32) == (types == usual)

    def library(_source: Path, options: Sequence[str]) -> Module:
        seconds = 7.0 if tuple(options) == wanted else 99.0
        return Module(seconds, 0.5, seconds)

    monkeypatch.setattr(host, "library", library)
    made = cuda_impl.FusedCuda(known.definition, "cuda_vector", known.variants, known._choose)
    x = torch.zeros(1, 2, 33, channels, dtype=dtype)
    parts = made.first_call(lambda: made(x, transform=transform))
    assert (parts.compile_s, parts.load_s) == (7.0, 0.5)
    assert parts.launch_s > 0


LOADING_S, TAKING_S = 0.2, 0.01


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for NVRTC, which takes 0.25 s, and for CuPy's driver layer, with its lazy loading."""
    cupy = MagicMock()
    cupy.cuda.driver.moduleLoadData = lambda _code: time.sleep(LOADING_S)
    cupy.cuda.driver.moduleGetFunction = lambda *_: time.sleep(TAKING_S)
    cubin = Cubin(Path("relu/cuda.cu"), "sm_90", b"", 0.25, 0.25)
    monkeypatch.setattr(launch, "compile_cubin", lambda *_: cubin)
    monkeypatch.setattr(launch, "arch_of", lambda _index: "sm_90")
    monkeypatch.setattr(launch, "_cupy", lambda: cupy)
    monkeypatch.setattr(torch.cuda, "device", lambda _index: nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(launch, "_module", cache(launch._module.__wrapped__))


@pytest.mark.usefixtures("driver")
def test_a_module_of_the_gpu_is_told_by_the_first_call_that_takes_a_kernel_from_it() -> None:
    """And a module of other options is another one."""

    def told(name: str, *options: str) -> dict[str, float | str]:
        taken = lambda: launch.module(Path("cuda.cu"), 0, options).function(name, "Pq", 256)  # noqa: E731
        return of_modules(taken).told()

    launch.module(Path("cuda.cu"), 0)  # prepared, or asked for its fingerprint
    first = told("relu_x4_f32")
    assert first["compile_s"] == 0.25
    assert float(first["load_s"]) >= LOADING_S + TAKING_S
    second = told("relu_x2_f32")
    assert second["compile_s"] == AT_HAND
    assert isinstance(second["launch_s"], float)  # of a kernel that was never launched
    assert TAKING_S <= float(second["load_s"]) < LOADING_S
    assert told("relu_x4_f32", "-DTHREADS=128")["compile_s"] == 0.25


def test_modules_are_counted_once_and_only_what_came_within_the_call_is_taken_off() -> None:
    old = Module(5.0, 1.0, 5.0, since=0.0)

    def call() -> None:
        announce(old, 0.0)
        announce(old, 0.25)
        announce(Module(0.0, 0.02, None, since=time.perf_counter()), 0.0)
        time.sleep(0.3)

    parts = of_modules(call)
    assert parts.compile_s == 5.0
    assert parts.load_s == pytest.approx(1.27)
    assert 0.03 <= parts.launch_s < 0.2
    later = of_modules(lambda: announce(old, 0.25))
    assert (later.told()["compile_s"], later.load_s, later.code_s) == (AT_HAND, 0.25, None)


def test_a_call_that_fails_leaves_no_listener_and_its_module_to_the_next() -> None:
    module = Module(5.0, 1.0, 5.0)

    def fails() -> None:
        announce(module, 0.0)
        raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        of_modules(fails)
    assert first_call._listeners.lists == []
    assert of_modules(lambda: announce(module, 0.0)).compile_s == 5.0


def test_torch_says_why_nothing_is_told() -> None:
    parts = registry.get("relu", "torch").first_call(lambda: None)
    assert "come compiled" in str(parts.told()["compile_s"])
    jit = registry.get("fused_transform", "torch_jit").first_call(lambda: None)
    assert "torch.jit compiles within" in str(jit.told()["compile_s"])
