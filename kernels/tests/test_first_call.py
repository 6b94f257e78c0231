"""A first call in its parts: of what was compiled, loaded, found or at hand, and of which module."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernels import first_call, host, launch, registry
from kernels.cuda import CudaScalar
from kernels.first_call import AT_HAND, CACHED, announced, of_inductor, of_modules, of_triton
from kernels.fused_transform import cuda_impl
from kernels.fused_transform.cuda_impl import default_types, host_options
from kernels.fused_transform.variants import Types
from kernels.tests.conftest import gpu, needs_gpu

X = torch.tensor([-1.0, 2.0])
SOURCE = r"""
#include "prelude.cuh"
KERNEL(256, relu_scalar_f32, (const float* x, float* y, i64 n)) {
    const i64 i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] <= 0 ? 0 : x[i];
}
"""


@dataclass(eq=False)
class Module:
    """What a launch asks for: its times are what is planted."""

    code_s: float
    load_s: float
    compile_s: float | None = None
    since: float = 0.0

    def function(self, *_: Any) -> Any:
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


def test_a_call_that_asks_for_no_module_says_so(scalar: CudaScalar) -> None:
    scalar(X)
    parts = scalar.first_call(lambda: scalar(X))
    assert parts.told() == {"compile_s": AT_HAND, "load_s": AT_HAND, "launch_s": parts.launch_s}


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
        return announced(Module(seconds, 0.5, seconds))

    monkeypatch.setattr(host, "library", library)
    made = cuda_impl.FusedCuda(known.definition, "cuda_vector", known.variants, known._choose)
    x = torch.zeros(1, 2, 33, channels, dtype=dtype)
    parts = made.first_call(lambda: made(x, transform=transform))
    assert (parts.compile_s, parts.load_s) == (7.0, 0.5)
    assert parts.launch_s > 0


def test_a_module_of_the_gpu_announces_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module(0.25, 0.125, 0.25)
    monkeypatch.setattr(launch, "_module", lambda *_: module)
    parts = of_modules(lambda: launch.module(Path("cuda.cu"), 0))
    assert (parts.compile_s, parts.load_s) == (0.25, 0.125)


def test_modules_are_counted_once_and_only_what_came_within_the_call_is_taken_off() -> None:
    old = Module(5.0, 1.0, 5.0, since=0.0)

    def call() -> None:
        announced(old)
        announced(old)
        announced(Module(0.0, 0.02, None, since=time.perf_counter()))
        time.sleep(0.05)

    parts = of_modules(call)
    assert (parts.compile_s, parts.load_s) == (5.0, 1.02)
    assert 0.03 <= parts.launch_s < 0.5


def test_a_call_that_fails_leaves_no_listener() -> None:
    def fails() -> None:
        raise RuntimeError("no such header")

    with pytest.raises(RuntimeError, match="no such header"):
        of_modules(fails)
    assert first_call._listeners.lists == []


class Hook(list[Any]):
    """A chain of Triton's, to which functions are added and from which they are removed."""

    add = list.append


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands for Triton's knobs."""
    runtime = SimpleNamespace(kernel_load_start_hook=Hook(), kernel_load_end_hook=Hook())
    knobs = SimpleNamespace(compilation=SimpleNamespace(listener=None), runtime=runtime)
    monkeypatch.setitem(sys.modules, "triton.knobs", knobs)
    monkeypatch.setattr(first_call, "find_spec", lambda _name: "there")
    return knobs


def compiles(knobs: SimpleNamespace, seconds: float, *, hit: bool) -> None:
    """Compile and load as Triton does, whose listener is told microseconds."""
    knobs.compilation.listener(
        src=None, metadata={}, times=SimpleNamespace(total=int(seconds * 1e6)), cache_hit=hit
    )
    for hook in knobs.runtime.kernel_load_start_hook:
        hook("module", "function", "name", {}, "hash")
    time.sleep(0.02)
    for hook in knobs.runtime.kernel_load_end_hook:
        hook("module", "function", "name", {}, "hash")


def test_tritons_listeners_tell_its_parts_and_are_gone_afterwards(triton: SimpleNamespace) -> None:
    heard: list[bool] = []
    earlier = lambda **told: heard.append(told["cache_hit"])  # noqa: E731
    triton.compilation.listener = earlier
    parts = of_triton(lambda: compiles(triton, 0.01, hit=False))
    assert parts.compile_s == parts.code_s == 0.01
    assert parts.load_s is not None
    assert 0.02 <= parts.load_s < 0.5
    assert parts.reasons == {}
    assert heard == [False]  # who listened before still does
    assert triton.compilation.listener is earlier
    assert not triton.runtime.kernel_load_start_hook
    assert not triton.runtime.kernel_load_end_hook


def test_a_triton_without_listeners_is_called_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_call, "find_spec", lambda _name: None)
    parts = of_triton(lambda: time.sleep(0.01))
    assert parts.launch_s >= 0.01
    assert parts.told()["compile_s"] == parts.told()["load_s"] == first_call.SILENT


@pytest.mark.parametrize("lacks", ["listener", "hooks", "add"])
def test_a_triton_with_knobs_but_without_all_listeners_is_called_too(
    lacks: str, triton: SimpleNamespace
) -> None:
    """So it is with Triton 3.4."""
    if lacks == "listener":
        del triton.compilation.listener
    elif lacks == "hooks":
        del triton.runtime.kernel_load_end_hook
    else:
        triton.runtime.kernel_load_start_hook = None
    assert of_triton(lambda: None).told()["load_s"] == first_call.SILENT


def test_triton_tells_what_it_found_and_what_it_had(triton: SimpleNamespace) -> None:
    found = of_triton(lambda: compiles(triton, 0.01, hit=True))
    assert found.told()["compile_s"] == f"{CACHED} within 0.01 s"
    assert found.code_s == 0.01
    had = of_triton(lambda: None)
    assert had.told() == {"compile_s": AT_HAND, "load_s": AT_HAND, "launch_s": had.launch_s}


def test_dynamos_clock_tells_the_compiling_of_this_call_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent = {"_compile.compile_inner": [40.0], "fx_codegen_and_compile": [30.0]}
    utils = SimpleNamespace(compilation_time_metrics=spent)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)

    def call(*, compiled: bool) -> None:
        time.sleep(0.05)
        spent["_compile.compile_inner"].append(0.03)
        if compiled:
            spent["fx_codegen_and_compile"].append(0.02)

    parts = of_inductor(lambda: call(compiled=True))
    assert parts.compile_s == 0.03
    assert 0.02 <= parts.launch_s < 0.5
    assert "loads while it compiles" in str(parts.told()["load_s"])
    found = of_inductor(lambda: call(compiled=False))
    assert found.told()["compile_s"] == f"{CACHED} within 0.03 s"
    assert found.code_s == 0.03
    had = of_inductor(lambda: None)
    assert (had.told()["compile_s"], had.code_s) == (AT_HAND, None)


def test_torch_says_why_nothing_is_told() -> None:
    parts = registry.get("relu", "torch").first_call(lambda: None)
    assert "come compiled" in str(parts.told()["compile_s"])
    jit = registry.get("fused_transform", "torch_jit").first_call(lambda: None)
    assert "torch.jit compiles within" in str(jit.told()["compile_s"])


@gpu
@needs_gpu
@pytest.mark.parametrize("way", ["relu/triton", "relu/torch_compile", "relu/cuda_vector"])
def test_on_a_gpu_a_new_process_tells_its_compiling(way: str, tmp_path: Path) -> None:
    """A process of its own, since this one may have launched it."""
    script = (
        "import json, sys, time, torch\n"
        "from kernels import registry\n"
        "x = torch.ones(4099, device='cuda')\n"
        "out = torch.empty_like(x)\n"
        "one = registry.get(*sys.argv[1].split('/'))\n"
        "def call():\n"
        "    one(x, out=out)\n"
        "    torch.cuda.synchronize()\n"
        "began = time.perf_counter()\n"
        "first = one.first_call(call).told()\n"
        "took = time.perf_counter() - began\n"
        "print(json.dumps([first, one.first_call(call).told(), took]))\n"
    )
    names = ("BANDWATCH_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    caches = {name: str(tmp_path / name) for name in names}
    done = subprocess.run(
        [sys.executable, "-c", script, way],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, took = json.loads(done.stdout.splitlines()[-1])
    assert sum(part for part in first.values() if isinstance(part, float)) < took  # none twice
    assert first["compile_s"] > 0.01
    assert way == "relu/torch_compile" or first["load_s"] > 0
    assert second["compile_s"] == AT_HAND
