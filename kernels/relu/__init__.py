"""ReLU: y = max(x, 0), NaN kept."""

from pathlib import Path

from kernels import definition
from kernels.cuda import CudaScalar, CudaVector
from kernels.implementation import Implementation, TorchImplementation
from kernels.peers import CompiledImplementation, TritonImplementation
from kernels.relu import torch_impl
from kernels.relu.reference import reference
from kernels.tolerances import EITHER_MAXIMUM

_HERE = Path(__file__).parent
_SOURCE = _HERE / "cuda.cu"
_TORCH = _HERE / "torch_impl.py"

DEFINITION = definition.elementwise(
    "relu",
    "max(x, 0)",
    inputs=("x",),
    reference=reference,
    flop_per_element=1,
    either_zero=EITHER_MAXIMUM,
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _TORCH, torch_impl.relu),
    CompiledImplementation(DEFINITION, "torch_compile", _TORCH, torch_impl.relu),
    TritonImplementation(DEFINITION, _HERE / "triton_impl.py"),
    CudaScalar(DEFINITION, _SOURCE),
    CudaVector(DEFINITION, _SOURCE, loads=(1, 2, 4), shifted_loads=(1, 2)),
)
