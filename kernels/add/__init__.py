"""Vector add: y = a + b, one rounding."""

from pathlib import Path

from kernels import definition
from kernels.add import torch_impl
from kernels.add.reference import reference
from kernels.cuda import CudaScalar, CudaVector
from kernels.implementation import Implementation, TorchImplementation

_HERE = Path(__file__).parent
_SOURCE = _HERE / "cuda.cu"

DEFINITION = definition.elementwise(
    "add", "a + b", inputs=("a", "b"), reference=reference, flop_per_element=1
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _HERE / "torch_impl.py", torch_impl.add),
    CudaScalar(DEFINITION, _SOURCE),
    CudaVector(DEFINITION, _SOURCE, loads=(1, 2), shifted_loads=(1,)),
)
