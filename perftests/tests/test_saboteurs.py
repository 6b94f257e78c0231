"""Each saboteur is refused, its broken link is named, and no time is stored."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.chain import measure
from perftests.harness.errors import Link
from perftests.tests import workloads
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from perftests.harness.chain import Outcome
    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs


def refused(outcome: Outcome, link: Link, status: str, text: str) -> None:
    """Assert that nothing was timed and that the record says which link broke."""
    assert outcome.broken is not None
    assert outcome.broken.link is link
    assert text in str(outcome.broken)
    assert outcome.seconds == []
    assert outcome.result["measurements_s"] == []
    assert outcome.result["summary"] is None
    assert outcome.result["energy"] is None
    assert set(outcome.result["first_call"].values()) == {None}
    assert outcome.result["status"] == status
    assert outcome.result["correctness"]["detail"] == str(outcome.broken)


REFUSALS: list[tuple[str, Callable[[], Any], Link, str, str]] = [
    (
        "does nothing",
        lambda: workloads.does_nothing,
        Link.COMPARE,
        "incorrect",
        "5003 of 5003 elements were never written",
    ),
    ("caches its output", workloads.CachesItsOutput, Link.FRESH, "incorrect", "wrong"),
    (
        "skips its tail",
        lambda: workloads.skips_its_tail,
        Link.COMPARE,
        "incorrect",
        "3 of 5003 elements were never written",
    ),
    (
        "writes out of bounds",
        lambda: workloads.writes_out_of_bounds,
        Link.GUARD,
        "incorrect",
        "the output: 4 bytes behind the tensor changed, up to 4 bytes away",
    ),
    (
        "writes before the start",
        lambda: workloads.writes_before_the_start,
        Link.GUARD,
        "incorrect",
        "the output: 4 bytes before the tensor changed, up to 4 bytes away",
    ),
    ("drops NaN", lambda: workloads.drops_nan, Link.COMPARE, "incorrect", "not nan"),
    (
        "fails to launch",
        lambda: workloads.fails_to_launch,
        Link.LAUNCH,
        "error",
        "RuntimeError: invalid configuration argument",
    ),
    (
        "changes its input",
        lambda: workloads.changes_its_input,
        Link.INPUTS,
        "incorrect",
        "input 0 was changed",
    ),
]
NAMES = [entry[0] for entry in REFUSALS]


@pytest.mark.parametrize(("name", "make", "link", "status", "text"), REFUSALS, ids=NAMES)
def test_a_saboteur_is_refused_when_timing(
    name: str,
    make: Callable[[], Any],
    link: Link,
    status: str,
    text: str,
    quick_session: Session,
    validate: Callable[[Any], Any],
) -> None:
    outcome = measure(relu_workload(make()), quick_session)
    refused(outcome, link, status, text)
    validate(outcome.envelope)


@pytest.mark.parametrize(("name", "make", "link", "status", "text"), REFUSALS, ids=NAMES)
def test_a_saboteur_is_refused_in_a_correctness_run(
    name: str,
    make: Callable[[], Any],
    link: Link,
    status: str,
    text: str,
    check_session: Session,
) -> None:
    refused(measure(relu_workload(make()), check_session), link, status, text)


def test_an_allocation_in_the_timed_region_is_refused(quick_session: Session) -> None:
    outcome = measure(relu_workload(workloads.allocates), quick_session)
    refused(outcome, Link.ALLOCATION, "error", "bytes allocated through torch in one launch")


@pytest.mark.parametrize("mode", ["cold", "hot", "rotated"])
def test_an_allocation_that_begins_in_the_timed_loop_is_refused(
    mode: str, quick_session: Session
) -> None:
    saboteur = workloads.AllocatesLater(calls=4)
    outcome = measure(relu_workload(saboteur, n=200_003), quick_session, mode=mode)
    refused(outcome, Link.ALLOCATION, "error", "bytes allocated through torch in one launch")


def test_a_declared_allocation_is_timed_with_a_warning(
    quick_session: Session, validate: Callable[[Any], Any]
) -> None:
    workload = relu_workload(workloads.allocates, allocates="the peer makes a temporary")
    outcome = measure(workload, quick_session)
    assert outcome.broken is None
    assert len(outcome.seconds) >= 1
    told = {warning["code"]: warning["message"] for warning in outcome.result["warnings"]}
    assert told["allocates"].startswith("the peer makes a temporary: ")
    assert "bytes allocated through torch in one launch" in told["allocates"]
    validate(outcome.envelope)


def test_a_declaration_without_an_allocation_warns_of_nothing(quick_session: Session) -> None:
    outcome = measure(relu_workload(allocates="it might"), quick_session)
    assert "allocates" not in {warning["code"] for warning in outcome.result["warnings"]}


def test_work_left_to_another_thread_is_refused(quick_session: Session) -> None:
    """The CPU's stand-in for a kernel on another stream."""
    threads = []

    def leaves_it_to_a_thread(inputs: Inputs, out: torch.Tensor) -> None:
        def late() -> None:
            time.sleep(0.05)
            workloads.relu_of_torch(inputs, out)

        threads.append(threading.Thread(target=late))
        threads[-1].start()

    outcome = measure(relu_workload(leaves_it_to_a_thread), quick_session)
    for thread in threads:
        thread.join()
    refused(outcome, Link.COMPARE, "incorrect", "elements were never written")


def test_a_launch_that_fails_in_the_timed_loop_is_refused(quick_session: Session) -> None:
    outcome = measure(relu_workload(workloads.FailsLater(calls=5)), quick_session)
    refused(outcome, Link.LAUNCH, "error", "too many resources requested for launch")


def test_a_kernel_that_stops_working_in_the_timed_loop_is_refused(quick_session: Session) -> None:
    outcome = measure(relu_workload(workloads.StopsWorking(calls=3)), quick_session)
    refused(outcome, Link.TIMED, "incorrect", "5003 of 5003 elements were never written")


@pytest.mark.parametrize("mode", ["cold", "hot", "rotated"])
def test_an_honest_kernel_passes_in_each_mode(
    mode: str, quick_session: Session, validate: Callable[[Any], Any]
) -> None:
    outcome = measure(relu_workload(n=200_003), quick_session, mode=mode)
    assert outcome.broken is None
    assert len(outcome.seconds) >= 1
    assert outcome.result["correctness"]["passed"] is True
    assert outcome.result["case"]["cache"] == mode
    validate(outcome.envelope)
