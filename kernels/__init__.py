"""Memory-bound kernels, each in several implementations that share one meaning and one test.

Importing this package imports neither torch nor CUDA; `kernels.registry` is where to start.
"""

from collections.abc import Callable
from typing import Any


def reference(kernel: str) -> Callable[..., Any]:
    """Return the float64 reference of a kernel: tensors and parameters in, float64 tensor out.

    Raises ValueError when there is no such kernel.
    """
    from kernels.registry import definition

    return definition(kernel).reference
