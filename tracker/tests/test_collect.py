"""What tests left in their reports: the outcome decides what may be kept."""

from dataclasses import dataclass, field
from typing import Any

from tracker.collect import Collected, Collector, without_time
from tracker.model import Correctness, Status
from tracker.record import Envelope, dump_envelope
from tracker.tests.factory import DEVICE, H200, make_case, make_result


@dataclass
class Phase:
    """One phase of a test, as pytest reports it."""

    nodeid: str = "perftests/test_relu.py::test_relu"
    when: str | None = "call"
    outcome: str = "passed"
    user_properties: list[tuple[str, object]] = field(default_factory=list)


def data(name: str = "relu", **more: Any) -> dict[str, Any]:
    return dump_envelope(Envelope(H200, DEVICE, make_result(make_case(name), **more)))


def collect(*phases: Phase) -> Collected:
    collector = Collector()
    for phase in phases:
        collector.add(phase)
    return collector.collect()


def phases_of(
    *records: object, call: str = "passed", teardown: str = "passed", nodeid: str = "t.py::a"
) -> list[Phase]:
    properties: list[tuple[str, object]] = [("other", 1), *(("bandwatch", r) for r in records)]
    return [
        Phase(nodeid, "setup", "passed", []),
        Phase(nodeid, "call", call, properties),
        Phase(nodeid, "teardown", teardown, properties),
    ]


def test_a_passed_test_s_record_is_kept_once() -> None:
    found = collect(*phases_of(data()))
    assert [e.result.case.kernel for e in found.envelopes] == ["relu"]
    assert found.envelopes[0].result.status is Status.OK
    assert found.problems == ()


def test_a_test_that_names_no_test_gets_its_node() -> None:
    found = collect(*phases_of(data(test=None), nodeid="t.py::here"))
    assert found.envelopes[0].result.test == "t.py::here"


def test_a_failed_test_s_time_is_dropped_but_its_record_is_not() -> None:
    (envelope,) = collect(*phases_of(data(), call="failed")).envelopes
    assert envelope.result.status is Status.ERROR
    assert envelope.result.measurements_s == ()
    assert envelope.result.summary is None
    assert "failed in its call phase" in envelope.result.reasons["measurements_s"]


def test_a_test_that_fails_in_tear_down_has_not_passed() -> None:
    (envelope,) = collect(*phases_of(data(), teardown="failed")).envelopes
    assert envelope.result.measurements_s == ()


def test_an_expected_failure_has_not_passed() -> None:
    phases = phases_of(data(), call="skipped")
    phases[1].wasxfail = "known"  # type: ignore[attr-defined]
    (envelope,) = collect(*phases).envelopes
    assert envelope.result.status is Status.ERROR


def test_an_incorrect_result_stays_incorrect() -> None:
    wrong = data(
        status=Status.INCORRECT,
        sample=[],
        summary=None,
        correctness=Correctness(checked=True, passed=False, detail="3 elements differ"),
    )
    (envelope,) = collect(*phases_of(wrong, call="failed")).envelopes
    assert envelope.result.status is Status.INCORRECT
    assert envelope.result.correctness.detail == "3 elements differ"


def test_what_is_kept_of_a_failed_test_is_a_valid_record() -> None:
    for correct in (True, False):
        result = without_time(
            make_result(correctness=Correctness(checked=True, passed=correct)), "it failed"
        )
        envelope = Envelope(H200, DEVICE, result)
        assert collect(*phases_of(dump_envelope(envelope))).envelopes == (envelope,)


def test_a_rerun_replaces_the_first_attempt() -> None:
    again = phases_of(data(bytes_moved=7))
    found = collect(*phases_of(data(), call="failed"), *again)
    assert [e.result.bytes_moved for e in found.envelopes] == [7]
    assert found.envelopes[0].result.status is Status.OK


def test_workers_do_not_overwrite_each_other() -> None:
    first, second = phases_of(data("relu")), phases_of(data("add"))
    for worker, phases in (("gw0", first), ("gw1", second)):
        for phase in phases:
            phase.worker_id = worker  # type: ignore[attr-defined]
    mixed = [phase for pair in zip(first, second, strict=True) for phase in pair]
    assert {e.result.case.kernel for e in collect(*mixed).envelopes} == {"relu", "add"}


def test_one_case_measured_by_two_tests_counts_once_and_is_told() -> None:
    found = collect(*phases_of(data(test=None)), *phases_of(data(), nodeid="t.py::b"))
    assert [e.result.test for e in found.envelopes] == ["t.py::a"]
    assert "t.py::b measured" in found.problems[0]


def test_a_record_that_is_none_is_one_line_and_the_others_stay() -> None:
    found = collect(*phases_of({"schema": 1}), *phases_of(data(), nodeid="t.py::b"))
    assert len(found.envelopes) == 1
    assert "the record of t.py::a" in found.problems[0]
    assert "\n" not in found.problems[0]


def test_lists_instead_of_pairs_are_understood() -> None:
    # This is what a report looks like after its way through JSON.
    phases = phases_of(data())
    for phase in phases:
        phase.user_properties = [list(pair) for pair in phase.user_properties]  # type: ignore[misc]
    assert len(collect(*phases).envelopes) == 1


def test_a_result_that_was_checked_only_is_counted_and_not_kept() -> None:
    checked = data()
    checked["result"] |= {"measurements_s": [], "summary": None}
    found = collect(*phases_of(checked))
    assert (found.envelopes, found.problems, found.untimed) == ((), (), 1)
