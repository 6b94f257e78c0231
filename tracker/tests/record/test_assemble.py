"""Runs from envelopes and from shards: nothing lost, nothing twice, no silent mixing."""

from dataclasses import replace

import pytest

from tracker.errors import RecordError
from tracker.model import Checkout
from tracker.record import assemble, merge
from tracker.record.parse import Envelope
from tracker.tests.factory import DEVICE, H200, make_case, make_result, make_run

START = "2026-03-02T00:00:00Z"


def envelopes(*sizes: int) -> list[Envelope]:
    return [Envelope(H200, DEVICE, make_result(make_case(n=n))) for n in sizes]


def test_envelopes_of_one_device_are_one_run() -> None:
    (run,) = assemble(envelopes(1024, 2048), Checkout(), run_id="run-00000001", started_at=START)
    assert [r.case.shape for r in run.results] == [(1024,), (2048,)]
    assert run.environment == H200


def test_two_devices_are_two_runs() -> None:
    first, second = envelopes(1024), envelopes(1024)
    second = [replace(second[0], device=replace(DEVICE, uuid="GPU-other"))]
    runs = assemble([*first, *second], Checkout(), run_id="run-00000001", started_at=START)
    assert [run.run_id for run in runs] == ["run-00000001", "run-00000001.2"]
    assert [run.device.uuid for run in runs] == [DEVICE.uuid, "GPU-other"]


def test_no_envelope_is_an_error() -> None:
    with pytest.raises(RecordError, match="nothing was measured"):
        assemble([], Checkout(), run_id="run-00000001", started_at=START)


def test_one_case_twice_names_the_test() -> None:
    with pytest.raises(RecordError, match=r"two results of relu/cuda_vector .*test_relu"):
        assemble(envelopes(1024, 1024), Checkout(), run_id="run-00000001", started_at=START)


def test_shards_become_one_run() -> None:
    one = make_run(results=(make_result(make_case(n=1)),), complete=False, command="pytest -n 1")
    two = replace(
        one,
        results=(make_result(make_case(n=2)),),
        started_at="2026-03-02T01:00:00+01:00",
        command="pytest -n 2",
    )
    merged = merge([one, two])
    assert [r.case.shape for r in merged.run.results] == [(1,), (2,)]
    # 01:00 at +01:00 is before 00:01 UTC.
    assert merged.run.started_at == "2026-03-02T01:00:00+01:00"
    assert merged.run.command == "pytest -n 1 ; pytest -n 2"
    assert merged.duplicates == ()


def test_a_case_that_came_twice_and_equal_is_kept_once_and_named() -> None:
    run = make_run()
    merged = merge([run, replace(run, results=run.results[:1])])
    assert merged.run == run
    assert merged.duplicates == (run.results[0].case.label,)


def test_a_case_with_two_results_is_a_conflict() -> None:
    run = make_run()
    other = make_result(run.results[0].case, [9e-4])
    with pytest.raises(RecordError, match="two different results of relu"):
        merge([run, replace(run, results=(other,))])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"run_id": "run-00000002"}, "run_id"),
        ({"environment": replace(H200, driver="999.1")}, "environment"),
        ({"device": replace(DEVICE, uuid="GPU-other")}, "device"),
        ({"checkout": Checkout()}, "checkout"),
    ],
)
def test_shards_of_different_runs_are_not_mixed(change: dict[str, object], name: str) -> None:
    run = make_run()
    with pytest.raises(RecordError, match=f"{name} differ"):
        merge([run, replace(run, **change)])  # type: ignore[arg-type]
