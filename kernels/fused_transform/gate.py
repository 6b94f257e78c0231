"""What the machine code of the fused transform must be, for the types that it is tuned for."""

import torch

from kernels.fused_transform.variants import DEFAULTS, Types, options_of, tile_of
from kernels.gate import Gate, Rule

__all__ = ["GATE"]
_F32, _F16, _U8 = torch.float32, torch.float16, torch.uint8
_FP32 = Types(_F32, _F32, 3, 3)
_STAGED = (_FP32, Types(_F16, _F16, 3, 3), Types(_U8, _F32, 3, 3), Types(_U8, _F16, 3, 3))
# What cuda_vector launches is another build than the defaults' for these.
_TILED = (
    Types(_U8, _F32, 3, 3),
    Types(_U8, _F32, 3, 1),
    Types(_F32, _F32, 3, 1),
    Types(_F32, _F32, 4, 3),
)
_WIDE = tuple(v for v in DEFAULTS.values() if v.kernel != "scalar")


def _wide(functions: str, registers: int) -> Rule:
    """Return a rule of wide accesses. The ends of a row move by elements."""
    return Rule(functions, load_bits=128, store_bits=128, registers=registers)


GATE = Gate(
    "fused_transform",
    rules=(
        # Accesses of an element: fp32's alone are built here, tests/test_code.py has the others.
        Rule("_scalar$"),
        _wide("_direct$", 40),
        # 1280 threads of an SM.
        _wide("_(shared|bulk)(_shifted)?$", 48),
        # The same, but 32 blocks of one warp, which may have 64, where it takes two vectors.
        _wide("_warp(_shifted)?$", 56),
        _wide("_pipeline(_shifted)?$", 64),
    ),
    builds=(
        options_of((DEFAULTS["scalar"],), _FP32),
        *(options_of(_WIDE, types) for types in _STAGED),
        *(options_of((tile_of(types),), types) for types in _TILED),
    ),
)
