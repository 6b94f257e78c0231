"""Real processes: what is picked, written down, resumed and told."""

import json
import os
from pathlib import Path

import pytest

from tracker.errors import UnfitError
from tracker.loop.fresh import MeasureError, PytestMeasure, Task
from tracker.loop.journal import read_journal
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import BuildError
from tracker.tests.loop import project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project.make(tmp_path / "project")
    return tmp_path / "project"


def measure(root: Path, **settings: object) -> tuple[PytestMeasure, Path, Task]:
    chosen = LoopSettings(suite=("perf",), **settings)  # type: ignore[arg-type]
    return PytestMeasure(chosen), root.parent / "run.jsonl", Task()


def test_the_suite_is_measured_in_a_process_of_its_own(root: Path) -> None:
    step, journal, task = measure(root)
    found = step(root, task, journal)
    assert {e.result.case.kernel for e in found.envelopes} == {"relu", "add"}
    assert list(found.by_test) == [project.RELU, project.ADD]
    assert found.failed == {}


def test_only_wanted_tests_run_and_missing_ones_are_told(root: Path) -> None:
    step, journal, _ = measure(root)
    gone = "perf/test_gone.py::test_gone"
    found = step(root, Task(tests=(project.ADD, gone)), journal)
    assert list(found.by_test) == [project.ADD]
    assert found.absent == (gone,)


def test_a_crash_loses_one_test_and_nothing_is_measured_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, journal, task = measure(root)
    monkeypatch.setenv("CRASH_IN_ADD", "1")
    with pytest.raises(MeasureError, match="died with exit code 9"):
        step(root, task, journal)
    assert read_journal(journal).done() == {project.RELU}
    monkeypatch.delenv("CRASH_IN_ADD")
    found = step(root, task, journal)
    assert list(found.by_test) == [project.RELU, project.ADD]
    setups = [p.nodeid for p in read_journal(journal).phases if p.when == "setup"]
    assert setups.count(project.RELU) == 1


def test_a_finished_journal_is_not_measured_again(root: Path) -> None:
    step, journal, task = measure(root)
    first = step(root, task, journal)
    (root / "perf/test_perf.py").unlink()
    assert step(root, task, journal) == first


def test_a_suite_that_cannot_be_imported_is_a_build_error(root: Path) -> None:
    (root / "perf/test_perf.py").write_text("import nothing_of_this_name\n")
    step, journal, task = measure(root)
    with pytest.raises(BuildError, match="nothing_of_this_name"):
        step(root, task, journal)


def test_an_unfit_environment_is_told_as_such(root: Path) -> None:
    suite = (
        "import pytest\ndef test_relu(gpu_benchmark):\n    pytest.exit('no device', returncode=4)\n"
    )
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root)
    with pytest.raises(UnfitError, match="no device"):
        step(root, task, journal)


def test_a_process_that_takes_too_long_is_ended(root: Path) -> None:
    suite = "import time\ndef test_relu(gpu_benchmark):\n    time.sleep(60)\n"
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root, time_limit_s=4.0)
    with pytest.raises(MeasureError, match="took too long"):
        step(root, task, journal)


def test_a_failed_test_has_no_time(root: Path) -> None:
    suite = "def test_relu(gpu_benchmark):\n    gpu_benchmark('relu')\n    raise AssertionError('wrong')\n"
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root)
    found = step(root, task, journal)
    assert found.envelopes[0].result.measurements_s == ()
    assert "wrong" in found.failed[project.RELU]


def test_a_record_that_is_no_strict_json_is_left_out(root: Path) -> None:
    suite = (
        "def test_relu(request, gpu_benchmark):\n"
        "    request.node.user_properties.append(('bandwatch', {'x': float('nan')}))\n"
        "def test_add(gpu_benchmark):\n    gpu_benchmark('add')\n"
    )
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root)
    assert list(step(root, task, journal).by_test) == [project.ADD]


def test_half_a_line_is_left_out(tmp_path: Path) -> None:
    whole = {
        "kind": "phase",
        "nodeid": "a",
        "when": "teardown",
        "outcome": "passed",
        "user_properties": [],
    }
    path = tmp_path / "j.jsonl"
    path.write_text(json.dumps(whole) + "\n" + json.dumps(whole)[:20])
    assert read_journal(path).done() == {"a"}


def test_the_store_of_the_caller_is_out_of_reach(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_STORE", "sqlite:///precious.db")
    suite = "import os\ndef test_relu(gpu_benchmark):\n    raise AssertionError(os.environ['BANDWATCH_STORE'])\n"
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root)
    reason = step(root, task, journal).failed[project.RELU]
    assert "precious" not in reason
    assert os.environ["BANDWATCH_STORE"] == "sqlite:///precious.db"
