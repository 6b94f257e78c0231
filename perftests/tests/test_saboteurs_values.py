"""Saboteurs of single values: the sign of a zero that is lost, a NaN that is left to the poison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from kernels.cases import Case
from kernels.implementation import TorchImplementation
from kernels.registry import definition, implementations, kernels
from perftests.harness import chain
from perftests.harness.buffers import POISON_NAN
from perftests.harness.chain import measure
from perftests.harness.errors import Link
from perftests.harness.specials import plant
from perftests.suite import workload
from perftests.tests import workloads
from perftests.tests.test_saboteurs import refused
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs, Workload

N = 5003
DEVICES = [pytest.param("cpu", id="cpu"), pytest.param("cuda", marks=pytest.mark.gpu, id="cuda")]
TIMES = pytest.mark.parametrize("times", [True, False], ids=["timing", "correctness"])


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    if request.param == "cuda":
        request.getfixturevalue("gpu")
    return torch.device(request.param)


@pytest.fixture
def session(times: bool, quick_session: Session, check_session: Session) -> Session:
    return quick_session if times else check_session


def planted(
    kernel: str, function: Callable[..., Any], device: torch.device, **parameters: Any
) -> Workload:
    """Return the suite's workload of a planted implementation of one of our kernels."""
    meaning = definition(kernel)
    implementation = TorchImplementation(meaning, "planted", Path(chain.__file__), function)
    case = Case(kernel, "float32", (N,), parameters=parameters)
    return workload(implementation, case, device)


def loses_the_sign(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    """Adds 0 to the sum: -0 + 0 is 0, all else stays."""
    torch.add(a, b, out=out)
    out.add_(0.0)


def keeps_the_sign(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> None:
    torch.add(a, b, out=out)


def lets_minus_zero_through(x: torch.Tensor, *, out: torch.Tensor) -> None:
    """Our ReLU's contract is 0."""
    torch.clamp_min(x, 0, out=out)
    torch.copysign(out, x, out=out)


@TIMES
def test_a_sum_that_loses_the_sign_of_zero_is_refused(
    session: Session, device: torch.device
) -> None:
    outcome = measure(planted("add", loses_the_sign, device), session)
    refused(outcome, Link.COMPARE, "incorrect", "elements wrong, first at 3: 0.0, not -0.0")
    assert measure(planted("add", keeps_the_sign, device), session).broken is None


@TIMES
def test_a_relu_that_lets_minus_zero_through_is_refused(
    session: Session, device: torch.device
) -> None:
    outcome = measure(planted("relu", lets_minus_zero_through, device), session)
    refused(outcome, Link.COMPARE, "incorrect", "-0.0, not 0.0")


@TIMES
def test_nan_left_unwritten_is_refused_on_fresh_inputs(
    session: Session, device: torch.device, times: bool
) -> None:
    """Poison of NaN looks right where NaN belongs; that of the fresh round is a number."""
    saboteur = workloads.LeavesNanUnwritten()
    outcome = measure(relu_workload(saboteur, device=device.type), session)
    refused(outcome, Link.FRESH, "incorrect", "elements were never written")
    assert saboteur.calls > 2 + times


def test_it_is_the_number_that_tells_an_unwritten_nan(
    check_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "POISON_NUMBER", POISON_NAN)
    assert measure(relu_workload(workloads.LeavesNanUnwritten()), check_session).broken is None


@pytest.mark.parametrize("kernel", kernels())
def test_each_case_of_the_suite_compares_signs_unless_the_definition_says_why_not(
    kernel: str,
) -> None:
    meaning, cpu = definition(kernel), torch.device("cpu")
    case = meaning.cases("cpu", "quick")[0]
    compared = {
        one.name: workload(one, case, cpu).zero_sign
        for one in implementations(kernel)
        if case.torch_dtype in one.dtypes
    }
    excused = {name for name, counts in compared.items() if not counts}
    peers = {name for name in compared if not name.startswith("cuda")}
    by_maximum = kernel in {"relu", "scale_relu", "bn_relu_add"}
    everyone = set(compared) if kernel == "fused_transform" else set()
    assert excused == (peers if by_maximum else everyone)
    assert all(meaning.either_zero_of(name) for name in excused)


@pytest.mark.parametrize("kernel", [k for k in kernels() if k != "fused_transform"])
def test_the_suites_inputs_ask_for_a_zero_whose_sign_counts(kernel: str) -> None:
    """Without one the comparison of signs would compare nothing."""
    meaning, cpu = definition(kernel), torch.device("cpu")
    case = meaning.cases("cpu", "quick")[0]
    generator = torch.Generator().manual_seed(1)
    values = plant(meaning.make_inputs(case, cpu, generator), 1)
    expected = meaning.reference(*values, **case.parameters).to(meaning.output(case)[1])
    minus = (values[0] == 0) & values[0].signbit()
    assert (expected[minus] == 0).any()


@TIMES
def test_a_truth_that_nobody_writes_is_refused(session: Session) -> None:
    """Every poison reads as true."""

    def truth(launch: Callable[..., Any]) -> Workload:
        return relu_workload(
            launch,
            reference=lambda inputs: torch.ones(inputs[0].shape, dtype=torch.float64),
            output_dtype=torch.bool,
            specials=False,
        )

    refused(measure(truth(workloads.does_nothing), session), Link.COMPARE, "incorrect", "of 5003")
    assert measure(truth(lambda _, out: out.fill_(True)), session).broken is None


@pytest.mark.parametrize("imaginary", [True, False])
@TIMES
def test_a_lone_complex_number_is_right_in_both_its_parts(
    imaginary: bool, session: Session
) -> None:
    def turns(inputs: Inputs, out: torch.Tensor) -> None:
        torch.mul(inputs[0], 1j if imaginary else 1, out=out)

    outcome = measure(
        relu_workload(
            turns,
            make_inputs=lambda seed: (torch.tensor(complex(seed, 2.0), dtype=torch.complex128),),
            reference=lambda inputs: inputs[0] * 1j,
            bound=1e-9,
            output_shape=(),
            output_dtype=torch.complex128,
            specials=False,
        ),
        session,
    )
    assert (outcome.broken is None) is imaginary
