"""Conversion fp32 <-> fp16 or bf16, rounding to nearest even, towards zero, up or down.

`to` names the target dtype; `rounding` is rn, rz, ru or rd and has no effect when widening.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kernels.convert import contract, torch_impl
from kernels.convert.reference import reference
from kernels.cuda import SUFFIX, CudaVector
from kernels.definition import FLOATS, Definition
from kernels.implementation import Implementation, TorchImplementation
from kernels.inputs import NORMAL, normal_inputs
from kernels.tolerances import EXACT

_HERE = Path(__file__).parent


class _Vector(CudaVector):
    """The vector kernel of a pair of dtypes and a rounding."""

    def _symbol(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> tuple[str, str]:
        narrowing = out.dtype is not torch.float32
        start = f"convert_{parameters['rounding']}" if narrowing else "convert"
        return start, f"{SUFFIX[inputs[0].dtype]}_{SUFFIX[out.dtype]}"

    def _extra(
        self,
        inputs: Sequence[torch.Tensor],  # noqa: ARG002 - the signature is the base's
        parameters: Mapping[str, Any],  # noqa: ARG002 - likewise
    ) -> Iterable[Any]:
        return ()


DEFINITION = Definition(
    name=contract.NAME,
    summary="fp32 <-> fp16 or bf16 with a rounding rule",
    inputs=("x",),
    dtypes=FLOATS,
    reference=reference,
    check=contract.check,
    make_inputs=lambda case, device, generator: normal_inputs(case, device, generator, 1),
    distribution=lambda _case: NORMAL,
    output=lambda case: (case.shape, contract.target(case.parameters)),
    cost=contract.cost,
    bound=lambda _case, _inputs: EXACT,
    cases=contract.cases,
    parameters={"to": "float16", "rounding": "rn"},
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _HERE / "torch_impl.py", torch_impl.convert),
    # Narrowing reads twice what it writes, so it needs more loads under way than a copy.
    _Vector(
        DEFINITION,
        _HERE / "cuda.cu",
        loads=(1, 2, 4),
        loads_of={torch.float32: (2, 4)},
        shifted_loads=(2,),
    ),
)
