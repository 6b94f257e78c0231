"""Which implementation is measured at which case, so that a selection fits its time.

The kernels under test and torch's own are measured everywhere: theirs are the series that verdicts
are made of. The others stand beside them where they tell something, and a compiled one, whose every
shape costs half a second of compilation, at the largest size only; one of Triton's does so in a
quick run, where its thirty compilations took a tenth of the time.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeAlias

from kernels.cost import cost
from kernels.peers import CompiledImplementation, TritonImplementation

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from kernels.cases import Case
    from kernels.implementation import Implementation

EVERYWHERE = frozenset({"cuda_vector", "torch"})
"""Implementations measured at every case."""
HUGE_BYTES = 1 << 30
"""Cases that move more are for the kernel under test alone: checking one takes a second."""
_FIRST_OFFSETS = "out+0"
"""How the alignment ends of the slice-like case, one input off, that stands for the others."""
_Flavour: TypeAlias = "tuple[str, tuple[tuple[str, Hashable], ...]]"


class Selection:
    """The choice among one kernel's cases on a device kind, "cuda" or "cpu"."""

    def __init__(self, cases: Sequence[Case], kind: str, tier: str) -> None:
        self._kind = kind
        self._tier = tier
        self._sizes: dict[_Flavour, list[int]] = {}
        for case in cases:
            if _is_plain(case):
                self._sizes.setdefault(_flavour(case), []).append(cost(case).bytes_moved)

    def has(self, implementation: Implementation, case: Case) -> bool:
        """Return whether an implementation is measured at a case."""
        if self._kind == "cpu":
            return self._on_cpu(implementation, case)
        if cost(case).bytes_moved > HUGE_BYTES:
            return implementation.name == "cuda_vector"
        if isinstance(implementation, CompiledImplementation):
            return self._tier == "default" and self._is_largest(case)
        if implementation.name in EVERYWHERE:
            return True
        compiles = isinstance(implementation, TritonImplementation) and self._tier == "quick"
        if compiles or implementation.allocates(case):
            return self._is_largest(case)
        return _is_plain(case) or case.alignment.endswith(_FIRST_OFFSETS)

    def _on_cpu(self, implementation: Implementation, case: Case) -> bool:
        """Choose on a CPU, where arithmetic in narrow types is emulated and takes a hundredfold."""
        narrow = case.torch_dtype.itemsize < 4
        smallest = _is_plain(case) and cost(case).bytes_moved == min(self._of(case))
        if implementation.name not in EVERYWHERE:
            return smallest and (not narrow or implementation.name.startswith("torch"))
        if narrow:
            return smallest
        return case.alignment == "aligned" or case.alignment.endswith(_FIRST_OFFSETS)

    def _is_largest(self, case: Case) -> bool:
        fit = [size for size in self._of(case) if size <= HUGE_BYTES]
        return _is_plain(case) and cost(case).bytes_moved == max(fit, default=0)

    def _of(self, case: Case) -> list[int]:
        return self._sizes.get(_flavour(case), [0])


def _flavour(case: Case) -> _Flavour:
    """Return what cases that differ in size and placement alone have in common."""
    return case.dtype, tuple(sorted(case.parameters.items()))


def _is_plain(case: Case) -> bool:
    """Whether a case is aligned and of even length: one of a series over sizes."""
    return case.alignment == "aligned" and prod(case.shape) % 2 == 0
