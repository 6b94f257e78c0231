"""What launches left in the buffers, held against the truth: guard zones, inputs, output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftests.harness.buffers import same_bits
from perftests.harness.compare import Comparison, compare
from perftests.harness.errors import ChainBrokenError, Link

if TYPE_CHECKING:
    import torch

    from perftests.harness.buffers import BufferSet, BufferSets
    from perftests.harness.oracle import Truth
    from perftests.harness.record import Findings
    from perftests.harness.workload import Workload


def settle(
    found: Findings,
    truth: Truth,
    link: Link,
    sets: BufferSets,
    poison: int,
    right: torch.Tensor | None = None,
) -> None:
    """Hold every set against the truth, when the device has nothing left to do; note comparisons.

    Each output is compared element by element, unless it holds the bits of one that was found right
    by the same truth: the first set's those of `right`, the others' those of the first set's.
    `poison` is what the outputs were filled with before.

    Raises ChainBrokenError: GUARD or INPUTS for what no launch may write, `link` for the output.
    """
    all_intact = sets.intact(truth.values)
    for buffers in (sets.first,) if all_intact else sets:
        if not all_intact and not buffers.intact(truth.values):
            raise _written(buffers, truth)
        if right is None or not same_bits(buffers.output_tensor, right):
            _hold_output(found, truth, link, buffers, poison)
        right = sets.first.output_tensor


def compared(workload: Workload, truth: Truth, output: torch.Tensor) -> Comparison:
    """Return how an output compares with the truth, by the workload's rule for zeros."""
    return compare(output, truth.expected, truth.bound, zero_sign=workload.zero_sign)


def _hold_output(
    found: Findings, truth: Truth, link: Link, buffers: BufferSet, poison: int
) -> None:
    outcome = compared(found.workload, truth, buffers.output_tensor)
    found.comparisons.append(outcome)
    if not outcome.passed:
        raise ChainBrokenError(link, _told(outcome, buffers, poison))


def _written(buffers: BufferSet, truth: Truth) -> ChainBrokenError:
    """Return the broken link of a guard zone or an input that a launch changed."""
    trespass = buffers.trespass()
    if trespass:
        return ChainBrokenError(Link.GUARD, f"written out of bounds: {trespass}")
    changed = buffers.changed_input(truth.values)
    return ChainBrokenError(Link.INPUTS, f"input {changed} was changed by the launch")


def _told(outcome: Comparison, buffers: BufferSet, poison: int) -> str:
    untouched = buffers.output.untouched(poison)
    if untouched:
        return f"{outcome.detail}; {untouched} of {outcome.count} elements were never written"
    return outcome.detail
