"""Which command a gate names to measure again what it could not judge, and that it names it once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tracker.errors import ExitCode
from tracker.gate import Gate, compare_runs
from tracker.queries import find_run
from tracker.report.document import Document
from tracker.report.text import to_text
from tracker.report.verdicts import Heading, verdict_document
from tracker.store import Store
from tracker.tests.factory import H200, sha
from tracker.tests.test_gate import ADD, RELU, TODAY, judge, measured, record
from tracker.thresholds import Thresholds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "gate.db")) as opened:
        yield opened


def test_a_new_torch_is_told_once_and_which_command_measures_the_base_again(store: Store) -> None:
    head = measured(2, cases=(RELU, ADD))
    libraries = {**H200.libraries, "torch": "2.10.0"}
    old = measured(1, cases=(RELU, ADD), environment=replace(H200, libraries=libraries))
    record(store, old, head)
    shown = to_text(report(judge(store, head)), width=200)
    assert shown.count("another environment") == 1
    assert (
        "libraries.torch: 2.10.0 -> 2.11.0: measure the base again in this one "
        "(bandwatch ci --ab); 2 cases\n"
    ) in shown
    a, b = find_run(store, old.run_id), find_run(store, head.run_id)
    gate = compare_runs(store, a, b, Thresholds(), today=TODAY)
    command = f"(bandwatch ab {sha(1)[:12]} {sha(2)[:12]}); 2 cases\n"
    assert f"measure the base again in this one {command}" in to_text(report(gate), width=200)
    assert gate.code is ExitCode.UNDECIDED


def report(gate: Gate) -> Document:
    return verdict_document(Heading("Verdicts"), gate.judged, gate.code, limit=60)


def test_a_commit_that_only_another_environment_measured_is_its_own_new_base(store: Store) -> None:
    head = measured(1, run_id="run-again", minute=9)
    record(store, measured(1, environment=replace(H200, driver="570.1")), head)
    told = judge(store, head).judged[0].verdict.reasons[0].message
    assert told.endswith("measure the base again in this one")


def test_nothing_is_named_to_measure_again_what_came_from_elsewhere(store: Store) -> None:
    old = measured(1, environment=replace(H200, driver="570.1"))
    head = measured(2, notes=("imported from Google Benchmark 1.9",))
    record(store, old, head)
    assert "bandwatch" not in judge(store, head).judged[0].verdict.reasons[0].message
