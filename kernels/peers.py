"""Implementations that a compiler makes: torch.compile of torch operations, and Triton kernels."""

import importlib
import importlib.util
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from kernels import first_call
from kernels.cases import Case
from kernels.definition import Definition
from kernels.implementation import Implementation

RECOMPILES = 256  # a static shape is a compilation of its own, and the suites have dozens


class _GpuOnly(Implementation):
    """What is measured on a GPU only: for a CPU it would be another compiler's product."""

    def unavailable(self, device: torch.device, dtype: torch.dtype) -> str | None:
        """Return in one line why this cannot run on `device` with `dtype`, or None when it can."""
        reason = super().unavailable(device, dtype)
        if reason:
            return reason
        if device.type != "cuda":
            return f"{self!r} is measured on a GPU only"
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed: it comes with a CUDA build of torch"
        return None


class CompiledImplementation(_GpuOnly):
    """torch.compile of a function of torch operations, `function(*inputs, out=, **parameters)`.

    Shapes are static, as in a model that runs one shape: compiled code that must take any length
    cannot use wide accesses, and would be a peer that we had made slow.
    """

    def __init__(
        self,
        definition: Definition,
        name: str,
        source: Path,
        function: Callable[..., Any],
    ) -> None:
        super().__init__(definition, name, source)
        self._function = function

    def allocates(self, case: Case) -> str | None:
        """Return why calls at a misaligned case allocate."""
        if case.alignment == "aligned":
            return None
        return "Inductor copies tensors that are off a 16-byte boundary before each call"

    def first_call(self, call: Callable[[], object]) -> first_call.Parts:
        """Make the first call: Dynamo's clock tells compiling."""
        return first_call.of_inductor(call)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        config: Any = importlib.import_module("torch._dynamo").config
        limit = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
        setattr(config, limit, max(RECOMPILES, getattr(config, limit)))
        compiled: Callable[..., Any] = torch.compile(self._function, dynamic=False)
        return compiled

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        self._compiled(*inputs, out=out, **parameters)


class TritonImplementation(_GpuOnly):
    """A Triton kernel: the module `source` has `launch(*inputs, out=, **parameters)`.

    The module is imported at the first call, since it needs Triton to be imported at all.
    """

    def __init__(
        self,
        definition: Definition,
        source: Path,
        dtypes: Sequence[torch.dtype] | None = None,
    ) -> None:
        super().__init__(definition, "triton", source, dtypes)
        self._module = f"kernels.{source.parent.name}.{source.stem}"

    @cached_property
    def _launch(self) -> Callable[..., None]:
        launch: Callable[..., None] = importlib.import_module(self._module).launch
        return launch

    def module_key(self, device: torch.device, dtype: torch.dtype) -> Hashable:  # noqa: ARG002 - one for all
        """Return that `prepare` makes what all Triton kernels launch through."""
        return ("triton", device.type)

    def prepare(self, device: torch.device, dtype: torch.dtype) -> None:  # noqa: ARG002 - one for all
        """Let Triton build what it calls the driver through: once a machine, by a C compiler."""
        _ = importlib.import_module("triton").runtime.driver.active.utils

    def first_call(self, call: Callable[[], object]) -> first_call.Parts:
        """Make the first call: Triton's listeners tell compiling and loading."""
        return first_call.of_triton(call)

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        if torch.cuda.current_device() == out.get_device():
            self._launch(*inputs, out=out, **parameters)
            return
        with torch.cuda.device(out.get_device()):
            self._launch(*inputs, out=out, **parameters)
