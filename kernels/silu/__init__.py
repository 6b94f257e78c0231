"""SiLU (swish): y = x * sigmoid(x), NaN kept, in fp32 for every element type."""

from pathlib import Path

import torch

from kernels import definition
from kernels.cuda import CudaVector
from kernels.implementation import Implementation, TorchImplementation
from kernels.peers import CompiledImplementation, TritonImplementation
from kernels.silu import torch_impl
from kernels.silu.reference import bound, reference

_HERE = Path(__file__).parent
_TORCH = _HERE / "torch_impl.py"

DEFINITION = definition.elementwise(
    "silu",
    "x * sigmoid(x)",
    inputs=("x",),
    reference=reference,
    flop_per_element=4,  # exponential, addition, division, product
    bound=bound,
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _TORCH, torch_impl.silu),
    CompiledImplementation(DEFINITION, "torch_compile", _TORCH, torch_impl.silu),
    TritonImplementation(DEFINITION, _HERE / "triton_impl.py"),
    CudaVector(
        DEFINITION,
        _HERE / "cuda.cu",
        loads=(1, 2),
        loads_of={torch.float32: (1, 2, 4)},
        shifted_loads=(1, 2),
    ),
)
