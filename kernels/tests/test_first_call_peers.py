"""What Triton and torch.compile tell of a first call: of a new shape's machine code too."""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernels import first_call, registry
from kernels.first_call import AT_HAND, CACHED, LAUNCHED, of_inductor, of_triton
from kernels.peers import CompiledImplementation
from kernels.relu import torch_impl as relu_of_torch
from kernels.tests.conftest import gpu, needs_gpu

NOTHING_NEW = {"compile_s": AT_HAND, "load_s": AT_HAND, "launch_s": LAUNCHED}


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


class Driver:
    """Triton's driver, which builds its helper when first asked for."""

    built = 0

    @property
    def utils(self) -> object:
        """Build."""
        self.built += 1
        return self


def test_what_all_triton_kernels_launch_through_is_made_ahead_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver()
    runtime = SimpleNamespace(driver=SimpleNamespace(active=driver))
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(runtime=runtime))
    of_triton = [
        implementation
        for kernel in registry.kernels()
        for implementation in registry.implementations(kernel)
        if implementation.name == "triton"
    ]
    device = torch.device("cuda")
    keys = {one.module_key(device, dtype) for one in of_triton for dtype in one.dtypes}
    assert len(of_triton) > 1
    assert len(keys) == 1
    of_triton[0].prepare(device, torch.float32)
    assert driver.built == 1


@gpu
@needs_gpu
def test_triton_has_a_helper_to_make_ahead(tmp_path: Path) -> None:
    """In a process of its own, with an empty cache: it is on the disk when no kernel is yet."""
    script = (
        "import torch\n"
        "from kernels.registry import get\n"
        "one = get('relu', 'triton')\n"
        "one.prepare(torch.device('cuda'), torch.float32)\n"
    )
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert list(tmp_path.rglob("*.so"))


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
    assert of_triton(lambda: None).told() == NOTHING_NEW


def test_tritons_new_specialisation_of_a_later_case_is_told(triton: SimpleNamespace) -> None:
    """Stands for what Triton keeps in memory: machine code by what it specialises arguments on."""
    known: set[tuple[bool, bool]] = set()

    def told(n: int) -> dict[str, float | str]:
        def call() -> None:
            if (n == 1, n % 16 == 0) not in known:
                known.add((n == 1, n % 16 == 0))
                compiles(triton, 0.01, hit=False)

        return of_triton(call).told()

    seconds = [told(n)["compile_s"] for n in (4099, 67, 4096, 8192, 1)]
    assert seconds == [0.01, AT_HAND, 0.01, AT_HAND, 0.01]
    assert told(8192) == NOTHING_NEW


def test_triton_may_load_what_another_device_had_compiled(triton: SimpleNamespace) -> None:
    def loads() -> None:
        for hook in (*triton.runtime.kernel_load_start_hook, *triton.runtime.kernel_load_end_hook):
            hook("module", "function", "name", {}, "hash")

    told = of_triton(loads).told()
    assert told["compile_s"] == AT_HAND
    assert isinstance(told["load_s"], float)
    assert isinstance(told["launch_s"], float)


def test_dynamos_clock_tells_the_compiling_of_this_call_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent = {"_compile.compile_inner": [40.0], "GraphLowering.run": [30.0]}
    utils = SimpleNamespace(compilation_time_metrics=spent)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)

    def call(*, compiled: bool) -> None:
        time.sleep(0.05)
        spent["_compile.compile_inner"].append(0.03)
        if compiled:
            spent["GraphLowering.run"].append(0.02)

    parts = of_inductor(lambda: call(compiled=True))
    assert parts.compile_s == 0.03
    assert 0.02 <= parts.launch_s < 0.5
    assert "loads while it compiles" in str(parts.told()["load_s"])
    found = of_inductor(lambda: call(compiled=False))
    assert found.told()["compile_s"] == f"{CACHED} within 0.03 s"
    assert found.code_s == 0.03
    assert found.told()["launch_s"] == found.launch_s  # of what was traced anew
    had = of_inductor(lambda: None)
    assert (had.told(), had.code_s) == (NOTHING_NEW, None)


def test_torch_compile_tells_that_it_compiles_anew_for_another_shape() -> None:
    """Dynamo and Inductor themselves, for this CPU: nothing of it hangs on the device."""
    config: Any = importlib.import_module("torch._functorch.config")
    inductor: Any = importlib.import_module("torch._inductor.config")
    torch._dynamo.reset()
    known = registry.get("relu", "torch_compile")
    assert isinstance(known, CompiledImplementation)
    made = CompiledImplementation(
        known.definition, "torch_compile", Path(relu_of_torch.__file__), relu_of_torch.relu
    )

    def told(n: int) -> dict[str, float | str]:
        x, out = torch.ones(n), torch.empty(n)
        return made.first_call(lambda: made(x, out=out)).told()

    with config.patch(enable_autograd_cache=False):
        with inductor.patch(fx_graph_cache=False):
            first, other, again = told(67), told(131), told(67)
        with inductor.patch(fx_graph_cache=True):
            told(61)
            torch._dynamo.reset()
            found = told(61)
    for parts in (first, other):
        assert isinstance(parts["compile_s"], float)
        assert parts["compile_s"] > 0.01
        assert isinstance(parts["launch_s"], float)
    assert again == NOTHING_NEW
    assert str(found["compile_s"]).startswith(CACHED)


LENGTHS = (4099, 67, 4096, 8192, 1, 4099)


@gpu
@needs_gpu
@pytest.mark.parametrize(
    ("way", "compiles_at"),
    [
        # Triton compiles for a length of 1 and for those that 16 divides, Inductor for each.
        ("relu/triton", {0, 2, 4}),
        ("relu/torch_compile", {0, 1, 2, 3, 4}),
        ("relu/cuda_vector", {0}),
    ],
)
def test_on_a_gpu_a_new_process_tells_its_compiling_length_by_length(
    way: str, compiles_at: set[int], tmp_path: Path
) -> None:
    """A process of its own, since this one may have launched it."""
    script = (
        "import json, sys, time, torch\n"
        "from kernels import registry\n"
        "one = registry.get(*sys.argv[1].split('/'))\n"
        "def told(n):\n"
        "    x = torch.ones(n, device='cuda')\n"
        "    out = torch.empty_like(x)\n"
        "    def call():\n"
        "        one(x, out=out)\n"
        "        torch.cuda.synchronize()\n"
        "    call_s = time.perf_counter()\n"
        "    parts = one.first_call(call).told()\n"
        "    return parts, time.perf_counter() - call_s\n"
        "print(json.dumps([told(int(n)) for n in sys.argv[2:]]))\n"
    )
    names = ("BANDWATCH_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    caches = {name: str(tmp_path / name) for name in names}
    done = subprocess.run(
        [sys.executable, "-c", script, way, *map(str, LENGTHS)],
        env={**os.environ, **caches},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    for index, (told, took) in enumerate(found):
        assert sum(part for part in told.values() if isinstance(part, float)) < took  # none twice
        if index not in compiles_at:
            assert told["compile_s"] == AT_HAND  # ours may take another kernel of its module
            assert way == "relu/cuda_vector" or told["load_s"] == AT_HAND
            continue
        assert told["compile_s"] > 0.01
        assert told["launch_s"] > 0
        assert way == "relu/torch_compile" or told["load_s"] > 0
    assert found[-1][0] == NOTHING_NEW
