"""Every kernel of ours, from its registration on, at every case of the correctness tier.

The suites below perftests check what they time, whose lengths may all be whole vectors: a kernel that
skips its tail passes there, and here it does not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from kernels import registry
from kernels.cases import cases
from kernels.compare import compare
from kernels.cuda import CudaImplementation
from kernels.inputs import empty_at, make_inputs
from kernels.tests.problems import skip_unless_available
from kernels.tolerances import bound

OURS = [
    pytest.param(i, dtype, id=f"{i!r}-{str(dtype).removeprefix('torch.')}")
    for kernel in registry.kernels()
    for i in registry.implementations(kernel)
    if isinstance(i, CudaImplementation)
    for dtype in i.dtypes
]


def wrong_cases(
    implementation: CudaImplementation, dtype: torch.dtype, device: torch.device
) -> list[str]:
    """Return in one line each the cases where an implementation is wrong, and how."""
    definition, found = implementation.definition, []
    for case in cases(implementation.kernel, device.type, "correctness"):
        if case.torch_dtype != dtype:
            continue
        inputs = make_inputs(case, device, 1)
        shape, out_dtype = definition.output(case)
        out = empty_at(shape, out_dtype, device, case.output_offset).fill_(77)
        implementation(*inputs, out=out, **case.parameters)
        expected = definition.reference(*inputs, **case.parameters)
        signs = definition.either_zero_of(implementation.name) is None
        result = compare(out, expected, bound(case, inputs), zero_sign=signs)
        found += [] if result.passed else [f"{case.label}: {result.detail}"]
    return found


@pytest.mark.parametrize(("implementation", "dtype"), OURS)
def test_every_case_is_right(
    implementation: CudaImplementation, dtype: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, dtype)
    assert wrong_cases(implementation, dtype, device) == []


class _SkipsTheTail(CudaImplementation):
    """Whole vectors of four only."""

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, _parameters: Mapping[str, Any]
    ) -> None:
        whole = out.numel() // 4 * 4
        out[:whole] = inputs[0][:whole].clamp_min(0)


def test_a_skipped_tail_is_seen(device: torch.device) -> None:
    planted = _SkipsTheTail(registry.definition("relu"), "planted", Path("cuda.cu"))
    found = wrong_cases(planted, torch.float32, device)
    assert any("[1027]" in line for line in found)
