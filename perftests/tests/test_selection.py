"""What the selections hold: every case for the kernels under test, no more than fits for peers."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch

from kernels.cases import Case, cases
from kernels.cost import cost
from kernels.registry import implementations, kernels
from perftests.selection import HUGE_BYTES, Selection
from perftests.suite import Problem, problems


def chosen(kernel: str, kind: str, tier: str = "default") -> list[Problem]:
    return list(problems(kernel, torch.device(kind), tier=tier, modes=("cold",)))


@pytest.mark.parametrize("kernel", kernels())
def test_the_kernel_under_test_meets_every_case_on_a_gpu(kernel: str) -> None:
    met = {p.case for p in chosen(kernel, "cuda") if p.implementation.name == "cuda_vector"}
    assert met == set(cases(kernel, "cuda", "default"))


@pytest.mark.parametrize("kernel", kernels())
@pytest.mark.parametrize(("kind", "tier"), [("cuda", "default"), ("cpu", "default")])
def test_every_implementation_is_measured_somewhere(kernel: str, kind: str, tier: str) -> None:
    met = {problem.implementation.name for problem in chosen(kernel, kind, tier)}
    assert met == {implementation.name for implementation in implementations(kernel)}


def test_a_compiled_peer_meets_the_largest_aligned_case_of_each_type_alone() -> None:
    met = [p.case for p in chosen("relu", "cuda") if p.implementation.name == "torch_compile"]
    assert [(c.dtype, c.shape, c.alignment) for c in met] == [
        ("float32", (1 << 26,), "aligned"),
        ("float16", (1 << 27,), "aligned"),
        ("bfloat16", (1 << 27,), "aligned"),
    ]
    assert "torch_compile" not in {
        p.implementation.name for p in chosen("relu", "cuda", tier="quick")
    }


@pytest.mark.parametrize("kernel", kernels())
def test_triton_compiles_little_in_a_quick_run(kernel: str) -> None:
    """The largest aligned case of each type and setting, each also in the default suite."""
    quick = [p.case for p in chosen(kernel, "cuda", "quick") if p.implementation.name == "triton"]
    default = [p.case for p in chosen(kernel, "cuda") if p.implementation.name == "triton"]
    assert set(quick) <= {replace(case, tier="quick") for case in default}
    largest: dict[object, Case] = {}
    for case in sorted(cases(kernel, "cuda", "quick"), key=lambda case: cost(case).bytes_moved):
        if case.alignment == "aligned" and cost(case).bytes_moved <= HUGE_BYTES:
            largest[case.dtype, *sorted(case.parameters.items())] = case
    assert set(quick) == (set(largest.values()) if default else set())


def test_huge_cases_are_for_the_kernel_under_test_alone() -> None:
    huge = Case("relu", "float32", (1 << 28,))
    assert cost(huge).bytes_moved > HUGE_BYTES
    selection = Selection([huge], "cuda", "default")
    met = [i.name for i in implementations("relu") if selection.has(i, huge)]
    assert met == ["cuda_vector"]


def test_a_cpu_emulates_little_narrow_arithmetic() -> None:
    narrow = [p.case for p in chosen("silu", "cpu") if p.case.dtype != "float32"]
    assert narrow
    assert all(prod(case.shape) * 2 <= 1 << 20 for case in narrow)


def test_identities_are_unique() -> None:
    for kernel in kernels():
        names = [problem.identity for problem in chosen(kernel, "cuda")]
        assert len(names) == len(set(names))
