"""`bandwatch ci` where something goes wrong: crashes, unfit machines, held locks, lost stores."""

from pathlib import Path

import pytest

from tracker.cli import ci
from tracker.doctor.devices import GpuSurvey
from tracker.doctor.packages import Torch
from tracker.loop.fresh import MeasureError
from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project
from tracker.tests.loop.conftest import OUT, Command, outcomes
from tracker.tests.loop.fake import FakeMeasure

pytestmark = pytest.mark.usefixtures("no_ci")
UNFIT = ci._unfit


def test_a_crash_costs_no_measurement(
    baseline: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    fake.git(baseline, "switch", "--quiet", "--detach", "main~2")

    def crash(number: int) -> None:
        if number == 3:  # in the second of the two repeats
            raise KeyboardInterrupt

    no_processes.fail = crash
    assert bandwatch("ci").code == 130
    no_processes.fail = lambda number: None
    answer = bandwatch("ci")
    assert answer.code == 1
    timed = [tests for _, tests, timing in no_processes.calls if timing]
    # The one that was interrupted is done again, nothing else.
    assert timed == [None, (project.RELU,), (project.RELU,), (project.RELU,)]
    with Store.open("sqlite:///.bandwatch/bandwatch.db", read_only=True) as store:
        here = runs(store, sha=fake.git(baseline, "rev-parse", "HEAD"))
    assert len(here) == 3


ORDER = """
import os
def pytest_runtest_logreport(report):
    if report.when == "call":
        step = os.path.basename(os.environ["BANDWATCH_JOURNAL"])
        print(step, report.outcome, file=open(os.environ["ORDER"], "a"))
"""
WRONG = """
import os
def test_relu(gpu_benchmark):
    assert not os.environ.get("WRONG"), "wrong at element 7"
    gpu_benchmark("relu")
def test_add(gpu_benchmark):
    gpu_benchmark("add")
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_nothing_is_timed_before_all_was_checked(
    history: Path,
    bandwatch: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    wrong: bool,
) -> None:
    (history / "conftest.py").write_text(project.CONFTEST + ORDER)
    (history / "perf/test_perf.py").write_text(WRONG)
    monkeypatch.setenv("ORDER", str(tmp_path / "order"))
    if wrong:
        monkeypatch.setenv("WRONG", "1")
    assert bandwatch("ci").code == (1 if wrong else 0)
    relu = "failed" if wrong else "passed"
    assert (tmp_path / "order").read_text().splitlines() == [
        *(f"check.jsonl {relu}", "check.jsonl passed"),
        *(f"measure.jsonl {relu}", "measure.jsonl passed"),
    ]


def test_a_process_that_dies_is_told_and_the_next_call_goes_on(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    def die(number: int) -> None:
        if number == 1:
            raise MeasureError("cannot measure: the process died with exit code 9")

    no_processes.fail = die
    answer = bandwatch("ci")
    assert answer.code == 3
    assert "died with exit code 9" in answer.out
    no_processes.fail = lambda number: None
    assert bandwatch("ci").code == 0
    assert [timing for _, _, timing in no_processes.calls] == [False, True, True]


def test_a_finished_session_is_not_taken_for_the_next_one(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    for _ in range(2):
        bandwatch("ci")
    assert len([1 for _, _, timing in no_processes.calls if timing]) == 2


def test_an_unfit_machine_ends_with_4_and_a_report(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.cli.ci._unfit", lambda *, gpu: "torch is not installed")
    answer = bandwatch("ci")
    assert answer.code == 4
    assert "torch is not installed" in (OUT / "comment.md").read_text()
    assert no_processes.calls == []


def test_a_cpu_is_not_measured_in_place_of_a_lost_gpu(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.cli.ci._unfit", UNFIT)
    monkeypatch.setattr("tracker.cli.ci.survey_gpus", lambda: GpuSurvey(problem="no driver"))
    monkeypatch.setattr("tracker.cli.ci.probe_torch", lambda: Torch("2.11", "13.0"))
    answer = bandwatch("ci", "--gpu")
    assert answer.code == 4
    assert "a GPU was asked for, and this would measure the CPU" in " ".join(answer.out.split())
    assert no_processes.calls == []
    assert bandwatch("ci").code == 0


def test_a_lock_that_is_held_ends_with_4(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path
) -> None:
    from tracker.loop.lock import held

    lock = tmp_path / "gpu.lock"
    with held(lock, 0):
        answer = bandwatch("ci", "--lock", str(lock), "--lock-timeout", "0.1")
    assert answer.code == 4
    assert "has held it for" in " ".join(answer.out.split())
    assert [timing for _, _, timing in no_processes.calls] == []
    assert bandwatch("ci", "--lock", str(lock)).code == 0


def test_a_suite_that_does_not_build_is_nothing_measured(
    history: Path, no_processes: FakeMeasure, bandwatch: Command
) -> None:
    settings = '[tool.bandwatch]\nsuite = ["perf"]\n[tool.bandwatch.ci]\nbuild = ["false"]\n'
    (history / "pyproject.toml").write_text(settings)
    answer = bandwatch("ci")
    assert answer.code == 3
    assert "cannot build" in answer.out


def test_a_store_that_is_out_of_reach_costs_the_record_not_the_verdict(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    answer = bandwatch("ci", "--store", f"sqlite:///{tmp_path}/file/runs.db")
    assert "not recorded" in answer.out
    assert answer.code == 2
    assert outcomes() == {"relu": "no baseline", "add": "no baseline"}


def test_a_folder_of_something_else_is_left_alone(
    history: Path, no_processes: FakeMeasure, bandwatch: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("precious")
    answer = bandwatch("ci", "--out", str(tmp_path / "mine"))
    assert answer.code == 2
    assert "choose another folder" in answer.err
    assert (tmp_path / "mine/thesis.txt").read_text() == "precious"
