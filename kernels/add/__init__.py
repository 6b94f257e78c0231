"""Vector add: y = a + b, one rounding; the packs that articles climb, and the vector form."""

from pathlib import Path

import torch

from kernels import definition
from kernels.add import torch_impl
from kernels.add.reference import reference
from kernels.cuda import CudaPack, CudaVector
from kernels.implementation import Implementation, TorchImplementation
from kernels.peers import TritonImplementation

_HERE = Path(__file__).parent
_SOURCE = _HERE / "cuda.cu"
_HALVES = (torch.float16, torch.bfloat16)

DEFINITION = definition.elementwise(
    "add", "a + b", inputs=("a", "b"), reference=reference, flop_per_element=1
)
IMPLEMENTATIONS: tuple[Implementation, ...] = (
    TorchImplementation(DEFINITION, "torch", _HERE / "torch_impl.py", torch_impl.add),
    TritonImplementation(DEFINITION, _HERE / "triton_impl.py"),
    *(
        CudaPack(DEFINITION, _SOURCE, f"float{k}", k, (torch.float32,), single="float1")
        for k in (1, 2, 3, 4)
    ),
    CudaPack(DEFINITION, _SOURCE, "half", 1, _HALVES, single="half"),
    CudaPack(DEFINITION, _SOURCE, "half2", 2, _HALVES, single="half"),
    CudaPack(DEFINITION, _SOURCE, "half8", 8, _HALVES, single="half"),
    CudaVector(DEFINITION, _SOURCE, loads=(1, 2), shifted_loads=(1,)),
)
