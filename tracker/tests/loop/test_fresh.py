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


# What is broken, the arguments of pytest, what is told of it and what to do.
TROUBLE = {
    "the plugin is not installed": (
        {},
        ("-p", "no:perftests.plugin"),
        "unrecognized arguments: --bandwatch-timing=on",
        "install Bandwatch and its extra `measure` for",
    ),
    "an option of theirs": (
        {},
        ("--nothing",),
        "unrecognized arguments: --nothing",
        "correct addopt",
    ),
    "an import in a conftest": (
        {"conftest.py": "import nothing_here\n"},
        (),
        "No module named 'nothing_here' .in .*conftest.py",
        "install nothing_here for",
    ),
    "an expression": (
        {},
        ("-k", "a and"),
        "Wrong expression passed to '-k'",
        "all that it printed",
    ),
    "settings": (
        {"pyproject.toml": '[tool.pytest.ini_options]\nminversion = "99"\n'},
        (),
        "'minversion' requires pytest-99",
        "all that it printed",
    ),
    "a hook": (
        {"conftest.py": "def pytest_collection_modifyitems():\n    raise ValueError('broken')\n"},
        (),
        "died with exit code 3 after its start: ValueError: broken",
        "all that it printed",
    ),
}


@pytest.mark.parametrize("sort", TROUBLE)
def test_what_keeps_pytest_from_measuring_is_told_with_what_to_do(root: Path, sort: str) -> None:
    files, arguments, told, advice = TROUBLE[sort]
    for name, text in files.items():
        (root / name).write_text(text)
    step, journal, task = measure(root, arguments=arguments)
    for _ in range(2):  # the second process is not taken for one that has finished
        with pytest.raises((BuildError, MeasureError), match=f"{told}.*; .*{advice}"):
            step(root, task, journal)


def test_the_log_of_an_earlier_process_is_not_told(root: Path) -> None:
    good = (root / "conftest.py").read_text()
    (root / "conftest.py").write_text("import nothing_here\n")
    step, journal, task = measure(root)
    with pytest.raises(BuildError, match="nothing_here"):
        step(root, task, journal)
    (root / "conftest.py").write_text(f"{good}\nraise RuntimeError('another')\n")
    with pytest.raises(BuildError, match="RuntimeError: another"):
        step(root, task, journal)


def test_a_session_that_ends_itself_is_told_and_goes_on_later(root: Path) -> None:
    good = (root / "perf/test_perf.py").read_text()
    stop = "def test_relu(gpu_benchmark):\n    gpu_benchmark('relu')\n"
    (root / "perf/test_perf.py").write_text(
        f"import pytest\n{stop}"
        "def test_add(gpu_benchmark):\n    pytest.exit('the licence is used', returncode=2)\n"
    )
    step, journal, task = measure(root)
    with pytest.raises(MeasureError, match="pytest was stopped: the licence is used"):
        step(root, task, journal)
    (root / "perf/test_perf.py").write_text(good)
    assert list(step(root, task, journal).by_test) == [project.RELU, project.ADD]


def test_a_fixture_that_is_missing_is_told_by_its_name(root: Path) -> None:
    suite = "def test_relu(gpu_benchmark, no_such_fixture):\n    pass\n"
    (root / "perf/test_perf.py").write_text(suite)
    step, journal, task = measure(root)
    assert step(root, task, journal).failed[project.RELU] == "fixture 'no_such_fixture' not found"


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
