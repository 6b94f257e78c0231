"""FLOP and compulsory bytes of a case: each input read once, each output written once."""

from dataclasses import dataclass
from math import prod

from kernels.cases import Case


@dataclass(frozen=True, slots=True)
class Cost:
    """`bytes_moved` counts compulsory traffic, `flop` arithmetic operations."""

    bytes_moved: int
    flop: int


def elementwise_cost(case: Case, inputs: int, flop_per_element: int) -> Cost:
    """Return the cost of `inputs` same-size reads and one write an element."""
    elements = prod(case.shape)
    return Cost((inputs + 1) * elements * case.torch_dtype.itemsize, flop_per_element * elements)


def cost(case: Case) -> Cost:
    """Return the cost of a case. Raises ValueError when there is no such kernel."""
    from kernels.registry import definition

    return definition(case.kernel).cost(case)
