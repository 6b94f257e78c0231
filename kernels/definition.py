"""What a kernel is apart from how it is computed: meaning, inputs, cost, error bound and cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch

from kernels.cases import Case, Scalar, elementwise_cases
from kernels.cost import Cost, elementwise_cost
from kernels.inputs import NORMAL, Check, elementwise_check, normal_inputs
from kernels.tolerances import EXACT

Tensors = tuple[torch.Tensor, ...]
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
ANY = "*"


@dataclass(frozen=True)
class Definition:
    """A kernel's contract.

    `parameters` maps each keyword to its default. `output` gives a case's output shape and dtype;
    `check` refuses arguments that do not fit and returns the output, allocated when none came.
    `distribution` says in words what `make_inputs` draws for a case.

    A zero of the output has the sign that it has in `reference`, except of the implementations that
    `either_zero` names (`ANY` for all of them), each with the reason why it may have either.
    """

    name: str
    summary: str
    inputs: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    reference: Callable[..., torch.Tensor]
    check: Check
    make_inputs: Callable[[Case, torch.device, torch.Generator], Tensors]
    distribution: Callable[[Case], str]
    output: Callable[[Case], tuple[tuple[int, ...], torch.dtype]]
    cost: Callable[[Case], Cost]
    bound: Callable[[Case, Tensors], torch.Tensor | float]
    cases: Callable[[str, str], tuple[Case, ...]]
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    either_zero: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def either_zero_of(self, implementation: str) -> str | None:
        """Return why a zero of an implementation may have either sign, None where it may not."""
        return self.either_zero.get(implementation) or self.either_zero.get(ANY)


def elementwise(
    name: str,
    summary: str,
    *,
    inputs: tuple[str, ...],
    reference: Callable[..., torch.Tensor],
    flop_per_element: int,
    bound: Callable[[Case, Tensors], torch.Tensor | float] = lambda _case, _inputs: EXACT,
    dtypes: tuple[torch.dtype, ...] = FLOATS,
    parameters: Mapping[str, Scalar] = MappingProxyType({}),
    either_zero: Mapping[str, str] = MappingProxyType({}),
) -> Definition:
    """Return the definition of a kernel whose inputs and output share shape and dtype."""
    count = len(inputs)
    return Definition(
        name=name,
        summary=summary,
        inputs=inputs,
        dtypes=dtypes,
        reference=reference,
        check=elementwise_check(name, inputs, dtypes),
        make_inputs=lambda case, device, generator: normal_inputs(case, device, generator, count),
        distribution=lambda _case: NORMAL,
        output=lambda case: (case.shape, case.torch_dtype),
        cost=lambda case: elementwise_cost(case, count, flop_per_element),
        bound=bound,
        cases=lambda device_type, tier: elementwise_cases(
            name, dtypes, count, device_type, tier, parameters
        ),
        parameters=parameters,
        either_zero=either_zero,
    )
