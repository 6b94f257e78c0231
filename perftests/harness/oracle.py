"""What a workload's output must be: inputs, reference and bound by seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perftests.harness.errors import SettingError
from perftests.harness.specials import plant

if TYPE_CHECKING:
    from collections.abc import Hashable

    import torch

    from perftests.harness.workload import Inputs, Workload


@dataclass(frozen=True)
class Truth:
    """Inputs of one seed with the float64 reference and the error allowed."""

    values: Inputs
    expected: torch.Tensor
    bound: float | torch.Tensor


@dataclass
class Oracle:
    """Makes truths, and keeps those of the last workload's `inputs_key`.

    Implementations of one case follow each other in a suite, and most of the time of a check goes
    into inputs and reference.
    """

    _key: Hashable = None
    _kept: dict[int, Truth] = field(default_factory=dict)

    def truth(self, workload: Workload, seed: int) -> Truth:
        """Return inputs, reference and bound of a workload for a seed."""
        key = workload.inputs_key
        if key is None or key != self._key:
            self._kept = {}
            self._key = key
        if seed not in self._kept:
            made = _truth(workload, seed)
            if key is None:
                return made
            self._kept[seed] = made
        return self._kept[seed]


def _truth(workload: Workload, seed: int) -> Truth:
    values = workload.make_inputs(seed)
    if not values:
        raise SettingError(
            f"cannot place {workload.label}: make_inputs gave no tensor; give one or more, if only "
            "an empty one on the device that is meant"
        )
    if workload.specials:
        values = plant(values, seed)
    return Truth(values, workload.reference(values), workload.error_bound(values))
