"""Scale and ReLU: y = max(x * scale, 0), NaN kept."""

from pathlib import Path

from kernels import definition
from kernels.cuda import CudaVector
from kernels.implementation import Implementation, TorchImplementation
from kernels.peers import CompiledImplementation, TritonImplementation
from kernels.scale_relu import torch_impl
from kernels.scale_relu.reference import reference
from kernels.tolerances import EITHER_MAXIMUM

_HERE = Path(__file__).parent
_TORCH = _HERE / "torch_impl.py"

DEFINITION = definition.elementwise(
    "scale_relu",
    "max(x * scale, 0)",
    inputs=("x",),
    reference=reference,
    flop_per_element=2,
    parameters={"scale": 0.7},
    either_zero=EITHER_MAXIMUM,
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _TORCH, torch_impl.scale_relu),
    CompiledImplementation(DEFINITION, "torch_compile", _TORCH, torch_impl.scale_relu),
    TritonImplementation(DEFINITION, _HERE / "triton_impl.py"),
    CudaVector(DEFINITION, _HERE / "cuda.cu", loads=(1, 2, 4), shifted_loads=(1, 2), layout="f"),
)
