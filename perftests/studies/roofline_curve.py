"""The measured roofline: K multiply-adds an element on a copy, as workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from kernels import host, launch
from perftests.harness.workload import Workload

if TYPE_CHECKING:
    from kernels.cuda import Function
    from perftests.harness.workload import Inputs

SOURCE = Path(__file__).parent / "roofline.cu"
THREADS = 256  # CURVE_THREADS of roofline.cu
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
A, B = 1 - 2.0**-9, 2.0**-9
"""Exact in fp32. Each step moves towards 1 by a 512th, so that 512 of them still tell."""
_UNIT = 2.0**-24


def function(step: int, device: torch.device) -> Function:
    """Return the kernel of so many multiply-adds on a device."""
    name, layout = f"fma_{step}", "PPqff"
    if device.type == "cpu":
        return host.library(SOURCE).function(name, layout, THREADS)
    return launch.module(SOURCE, launch.index_of(device)).function(name, layout, THREADS)


def chain(step: int, n: int, device: torch.device) -> Workload:
    """Return `step` multiply-adds on each of `n` fp32 elements; n is a multiple of four."""
    kernel = function(step, device)

    def launched(inputs: Inputs, out: torch.Tensor) -> None:
        kernel(-(-n // (4 * THREADS)), inputs[0].data_ptr(), out.data_ptr(), n, A, B)

    def make_inputs(seed: int) -> Inputs:
        generator = torch.Generator(device=device).manual_seed(seed)
        return (torch.randn(n, generator=generator, device=device),)

    def reference(inputs: Inputs) -> torch.Tensor:
        return 1 + (inputs[0].double() - 1) * A**step

    def bound(inputs: Inputs) -> torch.Tensor:
        # A step rounds twice at most, at a magnitude of max(|x|, 1) at most, and shrinks what was
        # lost before.
        return 2.02 * step * _UNIT * inputs[0].double().abs().clamp(min=1)

    return Workload(
        kernel="fma_chain",
        implementation="study_curve",
        launch=launched,
        make_inputs=make_inputs,
        reference=reference,
        output_shape=(n,),
        output_dtype=torch.float32,
        bytes_moved=8 * n,
        flop=2 * step * n,
        bound=bound,
        parameters={"steps": step},
        source_file="perftests/studies/roofline.cu",
        specials=False,
    )
