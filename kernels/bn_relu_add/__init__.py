"""Batch norm of inference, residual and ReLU: y = max(x * scale[c] + shift[c] + residual, 0).

`x` and `residual` are [N, H, W, C] (layout "nhwc"; a channels_last tensor permuted, no copy) or
[N, C, H, W] ("nchw"), contiguous; `scale` and `shift` [C] in fp32, from `reference.fold`. Training
needs statistics first and is not this kernel.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kernels.bn_relu_add import contract, torch_impl
from kernels.bn_relu_add.reference import bound, reference
from kernels.cuda import CudaVector
from kernels.definition import FLOATS, Definition
from kernels.implementation import Implementation, TorchImplementation
from kernels.peers import CompiledImplementation, TritonImplementation
from kernels.tolerances import EITHER_MAXIMUM

_HERE = Path(__file__).parent
_TORCH = _HERE / "torch_impl.py"


class _Vector(CudaVector):
    """The vector kernel, which takes the channel tables, C and the elements of a plane."""

    def _extra(
        self, inputs: Sequence[torch.Tensor], parameters: Mapping[str, Any]
    ) -> Iterable[Any]:
        x, _, scale, shift = inputs
        plane = 1 if parameters["layout"] == "nhwc" else x.shape[2] * x.shape[3]
        return scale.data_ptr(), shift.data_ptr(), scale.numel(), plane

    def _bind(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> Callable[[], None]:
        x, residual, scale, shift = inputs
        if x.numel() < contract.MOST_IN_LAUNCH:
            return super()._bind(inputs, out, parameters)
        images = contract.MOST_IN_LAUNCH // x[0].numel()
        parts = [slice(first, first + images) for first in range(0, len(x), images)]
        calls = [
            super(_Vector, self)._bind((x[p], residual[p], scale, shift), out[p], parameters)
            for p in parts
        ]

        def call() -> None:
            for part in calls:
                part()

        return call


DEFINITION = Definition(
    name=contract.NAME,
    summary="max(x * scale[c] + shift[c] + residual, 0)",
    inputs=("x", "residual", "scale", "shift"),
    dtypes=FLOATS,
    reference=reference,
    check=contract.check,
    make_inputs=contract.make_inputs,
    distribution=lambda _case: contract.DISTRIBUTION,
    output=lambda case: (case.shape, case.torch_dtype),
    cost=contract.cost,
    bound=bound,
    cases=contract.cases,
    parameters={"layout": "nhwc"},
    either_zero=EITHER_MAXIMUM,
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(
        DEFINITION,
        "torch",
        _TORCH,
        torch_impl.bn_relu_add,
        "torch promotes narrow types to the tables' fp32 in a temporary on a CPU",
    ),
    CompiledImplementation(DEFINITION, "torch_compile", _TORCH, torch_impl.bn_relu_add_fused),
    TritonImplementation(DEFINITION, _HERE / "triton_impl.py"),
    _Vector(
        DEFINITION,
        _HERE / "cuda.cu",
        loads=(1,),
        shifted_loads=(1,),
        layout="PPII",
        data_inputs=2,
    ),
)
