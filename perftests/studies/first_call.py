"""One first call in a process of its own: `python -m perftests.studies.first_call WAY DEVICE`.

The process imports what it needs, says so, and waits for a line on its standard input: imports of
several processes take place at once, calls one after the other. Then it prints one JSON object.
Code caches are where the environment says: see `caches`.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from kernels.first_call import clocked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import torch

    from kernels.cases import Case
    from kernels.implementation import Implementation

ELEMENTS = 32768
"""The largest of the article's shapes."""
CALLS, BACK_TO_BACK = 200, 400
SEED = 9
READY = "ready"
_TOLERANCE = 1e-5
_CACHES = ("BANDWATCH_CACHE", "CUPY_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_DRIVER_CACHE = "CUDA_CACHE_PATH"


@dataclass
class FirstCall:
    """Times in seconds. `load_s` is None where the tool does not tell it apart.

    `compile_s` is the time until machine code is there, compiled or found in a cache: `compiled`
    says which. `launch_s` is the rest of the first call. `calls_s` are the calls after it, each
    waited for; `pace_s` is the time a call when many are enqueued.
    """

    import_s: float
    context_s: float
    compile_s: float
    load_s: float | None
    launch_s: float
    compiled: bool
    right: bool
    pace_s: float
    calls_s: list[float] = field(default_factory=list)

    @property
    def first_s(self) -> float:
        """The whole first call."""
        return self.compile_s + (self.load_s or 0.0) + self.launch_s


def caches(folder: Path) -> dict[str, str]:
    """Return the environment that puts every code cache under a folder."""
    return {name: str(folder / name.lower()) for name in (*_CACHES, _DRIVER_CACHE)}


def case_of(kernel: str) -> Case:
    """Return the case that is called: the article's size, for images about as many values."""
    from kernels.cases import Case

    if kernel == "fused_transform":
        shape = (1, 64, ELEMENTS // 64 // 3, 3)
        return Case(kernel, "float32", shape, (), 0, {"transform": "imagenet_ycbcr"})
    return Case(kernel, "float32", (ELEMENTS,))


def import_tools(implementation: Implementation, device: torch.device) -> None:
    """Import what the first call would import, without touching a GPU."""
    name = implementation.name
    if name == "triton":
        import_module("triton")
        import_module(f"kernels.{implementation.kernel}.triton_impl")
    elif name.endswith("compile"):
        import_module("torch._dynamo")
        import_module("torch._inductor.compile_fx")
    elif name.startswith("cuda_") and device.type == "cuda":
        from kernels import build, toolkit

        import_module("cupy")
        build.nvrtc_version()
        toolkit.include_folders()


def measure(way: str, device_name: str, wait: Callable[[], object] = lambda: None) -> FirstCall:
    """Return the first call of `kernel/implementation` in this process, and those after it.

    `wait` is called after the imports. Raises RuntimeError when the way cannot run here.
    """
    began = time.perf_counter()
    import torch

    from kernels.registry import get

    torch.set_num_threads(1)
    kernel, name = way.split("/")
    device, implementation = torch.device(device_name), get(kernel, name)
    import_tools(implementation, device)
    import_s = time.perf_counter() - began
    wait()
    context_s = clocked(lambda: _touch(device))
    case = case_of(kernel)
    reason = implementation.unavailable(device, case.torch_dtype)
    if reason is not None:
        raise RuntimeError(f"{way} cannot run on {device}: {reason}")
    subject = _Subject(implementation, case, device)
    parts = implementation.first_call(subject.call)
    right = subject.is_right()
    calls_s = [clocked(subject.call) for _ in range(CALLS)]
    pace_s = clocked(subject.many) / BACK_TO_BACK
    return FirstCall(
        import_s=import_s,
        context_s=context_s,
        compile_s=parts.code_s or 0.0,
        load_s=parts.load_s,
        launch_s=parts.launch_s,
        compiled=parts.compile_s is not None,
        right=right,
        pace_s=pace_s,
        calls_s=calls_s,
    )


def _touch(device: torch.device) -> None:
    """Make the device's context and wait for it."""
    import torch

    torch.zeros(1, device=device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class _Subject:
    """An implementation with its arguments on a device."""

    def __init__(self, implementation: Implementation, case: Case, device: torch.device) -> None:
        import torch

        from kernels.inputs import make_inputs
        from kernels.registry import definition

        self._implementation, self._case, self._device = implementation, case, device
        self._definition = definition(case.kernel)
        self._inputs = make_inputs(case, device, SEED)
        shape, dtype = self._definition.output(case)
        self._out = torch.full(shape, float("nan"), dtype=dtype, device=device)
        _touch(device)

    def call(self) -> None:
        """Call and wait."""
        self._implementation(*self._inputs, out=self._out, **self._case.parameters)
        self._wait()

    def many(self) -> None:
        """Call many times, then wait."""
        for _ in range(BACK_TO_BACK):
            self._implementation(*self._inputs, out=self._out, **self._case.parameters)
        self._wait()

    def _wait(self) -> None:
        if self._device.type == "cuda":
            import torch

            torch.cuda.synchronize(self._device)

    def is_right(self) -> bool:
        """Return whether the output is that of the reference. A NaN is not."""
        expected = self._definition.reference(*self._inputs, **self._case.parameters)
        error = (self._out.double() - expected.double()).abs().max()
        return float(error) <= _TOLERANCE


def main(way: str, device_name: str) -> None:
    """Measure when told to and print the times as JSON."""

    def wait() -> None:
        print(READY, flush=True)
        sys.stdin.readline()

    print(json.dumps(asdict(measure(way, device_name, wait))))


if __name__ == "__main__":
    main(*sys.argv[1:])
