"""Each implementation as an operator of torch's library, so that torch.compile takes it as it is.

`torch.ops.bandwatch.<kernel>_<implementation>` returns a new tensor;
`..._out` writes the one that it is given.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from kernels.cases import Scalar
from kernels.implementation import Implementation

NAMESPACE = "bandwatch"
_TYPES = {float: "float", int: "int", bool: "bool", str: "str"}


@cache
def _library() -> Any:
    library: Any = torch.library.Library  # its methods carry no types
    return library(NAMESPACE, "DEF")


def _schema(implementation: Implementation) -> str:
    definition = implementation.definition
    tensors = ", ".join(f"Tensor {name}" for name in definition.inputs)
    extra = "".join(
        f", {_TYPES[type(default)]} {name}" for name, default in definition.parameters.items()
    )
    return f"{tensors}{extra}"


def register(implementation: Implementation) -> None:
    """Make the two operators of an implementation known to torch."""
    count = len(implementation.definition.inputs)
    names = tuple(implementation.definition.parameters)
    operator = f"{implementation.kernel}_{implementation.name}"

    def functional(*arguments: Any) -> torch.Tensor:
        parameters = dict(zip(names, arguments[count:], strict=True))
        result: torch.Tensor = implementation(*arguments[:count], **parameters)
        return result

    def write(*arguments: Any, out: torch.Tensor) -> None:
        implementation(
            *arguments[:count], out=out, **dict(zip(names, arguments[count:], strict=True))
        )

    def shape_only(*arguments: Any) -> torch.Tensor:
        parameters = dict(zip(names, arguments[count:], strict=True))
        return implementation.definition.check(arguments[:count], None, parameters)

    library = _library()
    library.define(f"{operator}({_schema(implementation)}) -> Tensor")
    library.define(f"{operator}_out({_schema(implementation)}, *, Tensor(a!) out) -> ()")
    for key in ("CPU", "CUDA"):
        library.impl(operator, functional, key)
        library.impl(f"{operator}_out", write, key)
    torch.library.register_fake(f"{NAMESPACE}::{operator}", shape_only, lib=library)
    torch.library.register_fake(f"{NAMESPACE}::{operator}_out", lambda *_, out: None, lib=library)  # noqa: ARG005 - its name is the schema's


def call_operator(
    implementation: Implementation,
    inputs: Sequence[Any],
    out: Any,
    parameters: Mapping[str, Scalar],
) -> Any:
    """Call the operator of an implementation: what torch.compile sees instead of a launch."""
    known = implementation.definition.parameters
    values = [parameters.get(name, default) for name, default in known.items()]
    namespace = getattr(torch.ops, NAMESPACE)
    operator = f"{implementation.kernel}_{implementation.name}"
    if out is None:
        return getattr(namespace, operator)(*inputs, *values)
    getattr(namespace, f"{operator}_out")(*inputs, *values, out=out)
    return out
