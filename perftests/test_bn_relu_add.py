"""Batch norm of inference, residual and ReLU: checked and, where asked, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftests.suite import Problem, pytest_generate_tests

if TYPE_CHECKING:
    from perftests.plugin import GpuBenchmark

__all__ = ["pytest_generate_tests"]
KERNEL = "bn_relu_add"


def test_bn_relu_add(problem: Problem, gpu_benchmark: GpuBenchmark) -> None:
    """The output is right everywhere, and the time is one to trust."""
    problem.run(gpu_benchmark)
