"""Every kernel and implementation, found by name."""

from functools import cache
from importlib import import_module

from kernels.definition import Definition
from kernels.implementation import Implementation
from kernels.operators import register

_KERNELS = ("relu", "add", "silu", "scale_relu", "bn_relu_add", "convert", "fused_transform")


def kernels() -> tuple[str, ...]:
    """Return the kernels' names."""
    return _KERNELS


@cache
def _package(kernel: str) -> tuple[Definition, tuple[Implementation, ...]]:
    if kernel not in _KERNELS:
        raise ValueError(f"no kernel {kernel!r}: the kernels are {', '.join(_KERNELS)}")
    package = import_module(f"kernels.{kernel}")
    for implementation in package.IMPLEMENTATIONS:
        register(implementation)
    return package.DEFINITION, package.IMPLEMENTATIONS


def definition(kernel: str) -> Definition:
    """Return what a kernel means. Raises ValueError naming the kernels when there is none such."""
    return _package(kernel)[0]


def implementations(kernel: str) -> tuple[Implementation, ...]:
    """Return the implementations of a kernel. Raises ValueError when there is no such kernel."""
    return _package(kernel)[1]


def get(kernel: str, name: str) -> Implementation:
    """Return one implementation. Raises ValueError naming those that exist."""
    for implementation in implementations(kernel):
        if implementation.name == name:
            return implementation
    known = ", ".join(i.name for i in implementations(kernel))
    raise ValueError(f"no implementation {name!r} of {kernel}: there are {known}")
