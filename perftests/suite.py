"""The bridge from our kernels to the harness: each implementation and case as a workload.

A suite module names its kernel and imports two things from here:

    from perftests.suite import Problem, pytest_generate_tests

    KERNEL = "relu"

    def test_relu(problem: Problem, gpu_benchmark: GpuBenchmark) -> None:
        problem.run(gpu_benchmark)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import pytest

from kernels.cases import Case, cases
from kernels.cost import cost
from kernels.implementation import ROOT
from kernels.inputs import make_inputs
from kernels.registry import definition, implementations
from kernels.tolerances import bound
from perftests import ahead
from perftests.harness.errors import SettingError, UnfitError
from perftests.harness.session import choose_device
from perftests.harness.workload import Inputs, Workload
from perftests.options import worker_index
from perftests.plugin import SETTINGS, offer_budget
from perftests.selection import Selection
from perftests.source_line import source_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from kernels.implementation import Implementation
    from perftests.plugin import GpuBenchmark

BUDGET_S = {("cuda", False): 22.0, ("cuda", True): 4.0, ("cpu", False): 30.0, ("cpu", True): 10.0}
"""Seconds that the suites of all kernels may sample in one cache mode, by kind and quickness.

Checks, first calls and yardsticks come on top: on an H200 about a minute of two.
"""
_SMALL_ELEMENTS = 1 << 14
_SMALL_PERIOD = 4096
"""Lengths that agree to this modulus meet the same tails and heads."""


@dataclass(frozen=True)
class Problem:
    """One test: an implementation at a case, on a device, in a cache mode."""

    implementation: Implementation
    case: Case
    device: torch.device
    mode: str

    @property
    def identity(self) -> str:
        """The test's id, free of spaces."""
        case = self.case
        parts = [
            self.implementation.name,
            case.dtype,
            "x".join(map(str, case.shape)),
            *([] if case.alignment == "aligned" else [case.alignment]),
            *(f"{name}={value}" for name, value in sorted(case.parameters.items())),
            self.mode,
        ]
        return re.sub(r"\s+", "_", "-".join(parts))

    def run(self, gpu_benchmark: GpuBenchmark) -> None:
        """Check and time this problem."""
        gpu_benchmark(workload(self.implementation, self.case, self.device), mode=self.mode)


def problem_of(item: pytest.Item) -> Problem | None:
    """Return the problem of one of the suite's tests; None for any other test."""
    callspec = getattr(item, "callspec", None)
    problem = callspec.params.get("problem") if callspec else None
    return problem if isinstance(problem, Problem) else None


def workload(implementation: Implementation, case: Case, device: torch.device) -> Workload:
    """Return the workload of an implementation at a case, with its small form."""
    meaning = definition(case.kernel)
    shape, dtype = meaning.output(case)
    price = cost(case)
    smaller = small(case)

    def launch(inputs: Inputs, out: torch.Tensor) -> None:
        implementation(*inputs, out=out, **case.parameters)

    return Workload(
        kernel=case.kernel,
        implementation=implementation.name,
        launch=launch,
        make_inputs=lambda seed: make_inputs(case, device, seed),
        distribution=meaning.distribution(case),
        reference=lambda inputs: meaning.reference(*inputs, **case.parameters),
        output_shape=shape,
        output_dtype=dtype,
        bytes_moved=price.bytes_moved,
        flop=price.flop,
        bound=lambda inputs: bound(case, inputs),
        dtype=case.dtype,
        shape=case.shape,
        alignment=case.alignment,
        parameters=case.parameters,
        input_offsets=case.input_offsets,
        output_offset=case.output_offset,
        zero_sign=meaning.either_zero_of(implementation.name) is None,
        fingerprint=implementation.fingerprint(device, case.torch_dtype),
        source_file=implementation.source_file,
        source_line=source_line(ROOT / implementation.source_file, case.kernel, case.dtype),
        small=None if smaller == case else partial(workload, implementation, smaller, device),
        first_call=lambda call: implementation.first_call(call).told(),
        inputs_key=(case.kernel, case.label, device),
        allocates=implementation.allocates(case),
    )


def small(case: Case) -> Case:
    """Return the case cut down for a correctness run: same alignment, same tail, fewer rows."""
    total = prod(case.shape)
    if total <= _SMALL_ELEMENTS:
        return case
    if len(case.shape) == 1:
        return replace(case, shape=(_SMALL_PERIOD + total % _SMALL_PERIOD,))
    row = total // case.shape[0]
    rows = max(1, min(case.shape[0], _SMALL_ELEMENTS // row))
    return replace(case, shape=(rows, *case.shape[1:]))


def problems(
    kernel: str, device: torch.device, *, tier: str, modes: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield the implementations at the cases of a tier in every mode, like cases together.

    The implementations of one case follow each other, so that they share the device's state.
    """
    found = cases(kernel, device.type, tier)
    selection = Selection(found, device.type, tier)
    for case in found:
        for mode in modes:
            for implementation in implementations(kernel):
                if selection.has(implementation, case):
                    yield Problem(implementation, case, device, mode)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test that asks for `problem` with its module's KERNEL."""
    if "problem" not in metafunc.fixturenames:
        return
    config = metafunc.config
    settings = config.stash[SETTINGS]
    try:
        device = choose_device(config.getoption("--bandwatch-device"), worker_index())
    except (SettingError, UnfitError) as error:
        raise pytest.UsageError(f"--bandwatch-device: {error}") from None
    tier = "quick" if settings.quick else "default"
    offer_budget(config, BUDGET_S[device.type, settings.quick] * len(settings.modes))
    if not config.pluginmanager.hasplugin(ahead.NAME):
        config.pluginmanager.register(ahead.CompileAhead(), ahead.NAME)
    found = problems(metafunc.module.KERNEL, device, tier=tier, modes=settings.modes)
    metafunc.parametrize("problem", [_parameter(problem) for problem in _runnable(found)])


def _runnable(found: Iterator[Problem]) -> Iterator[tuple[Problem, str | None]]:
    """Yield problems with the reason why they cannot run, once an implementation and dtype."""
    told = set()
    for problem in found:
        implementation, case = problem.implementation, problem.case
        reason = implementation.unavailable(problem.device, case.torch_dtype)
        key = (implementation.name, case.dtype)
        if reason is None or key not in told:
            yield problem, reason
        if reason is not None:
            told.add(key)


def _parameter(found: tuple[Problem, str | None]) -> object:
    problem, reason = found
    marks = [] if reason is None else [pytest.mark.skip(reason=reason)]
    return pytest.param(problem, id=problem.identity, marks=marks)
