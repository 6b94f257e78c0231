"""Whose an error is that the chain meets, and what is left of a case that it ends. No GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness import chain
from perftests.harness.chain import measure
from perftests.harness.errors import ChainBrokenError, Link
from perftests.tests.test_chain import session
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_launch_that_does_not_tell_its_error_is_named_by_who_meets_it(
    monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any]
) -> None:
    """The runtime keeps it, and torch raises it at the next kernel: that of a comparison."""

    def meets_it(*_: object) -> None:
        raise RuntimeError("CUDA error: invalid configuration argument\nand how to look for it")

    monkeypatch.setattr("perftests.harness.chain.settle", meets_it)
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert (outcome.broken.link, outcome.broken.sticky) == (Link.LAUNCH, False)
    assert "did not say so: " in str(outcome.broken)
    assert "CUDA error: invalid configuration argument; check" in str(outcome.broken)
    assert (outcome.result["status"], outcome.seconds) == ("error", [])
    validate(outcome.envelope)


@pytest.mark.parametrize("timing", [True, False])
@pytest.mark.parametrize("what", ["make_inputs", "reference"])
def test_an_error_of_the_workloads_own_functions_is_raised_and_blamed_on_no_launch(
    what: str, timing: bool
) -> None:
    """It says what a launch's would, and comes with other values alone."""
    sound = relu_workload()
    calls = []

    def fails(value: Any) -> Any:
        calls.append(value)
        if len(calls) > 1:
            raise RuntimeError("CUDA error: no kernel image is available for execution")
        return getattr(sound, what)(value)

    failing: dict[str, Any] = {what: fails}
    with pytest.raises(RuntimeError, match="no kernel image"):
        measure(replace(sound, **failing), session(timing=timing))
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("link", "status"),
    [
        (Link.SAMPLES, "no_sample"),
        (Link.PEAK, "over_peak"),
        (Link.ALLOCATION, "error"),
        (Link.TIMED, "incorrect"),
    ],
)
def test_what_breaks_while_timing_is_the_status_of_a_record_without_a_time(
    link: Link, status: str, monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any]
) -> None:
    def breaks(*_: object) -> None:
        raise ChainBrokenError(link, "planted")

    monkeypatch.setattr(chain, "time_workload", breaks)
    outcome = measure(relu_workload(), session())
    assert (outcome.result["status"], outcome.seconds) == (status, [])
    assert outcome.result["measurements_s"] == []
    validate(outcome.envelope)
