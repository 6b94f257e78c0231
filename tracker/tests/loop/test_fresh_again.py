"""Real processes whose first try was cut short: what the second one makes of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tracker.errors import UnfitError
from tracker.loop.fresh import PytestMeasure, Task
from tracker.loop.journal import read_journal
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import BuildError
from tracker.tests.loop import project
from tracker.tests.processes import lives

ROOT = Path(__file__).parents[3]
# Measures the suite in a process that it starts, and waits for it.
CALLER = """
import sys
from pathlib import Path
from tracker.loop.fresh import PytestMeasure, Task
from tracker.loop.settings import LoopSettings
root = Path(sys.argv[1])
PytestMeasure(LoopSettings(suite=("perf",)))(root, Task(), root.parent / "run.jsonl")
"""
SLOW = """
import os, time
def test_relu(gpu_benchmark):
    print(os.getpid(), file=open("began", "w"), flush=True)
    time.sleep(60)
"""
UNFIT = """
import os, pytest
def test_relu(gpu_benchmark):
    if os.path.exists("unfit"):
        pytest.exit("environment unfit: the lock is held", returncode=4)
    gpu_benchmark("relu")
def test_add(gpu_benchmark):
    gpu_benchmark("add")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project.make(tmp_path / "project")
    return tmp_path / "project"


def until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="the system ends children on Linux alone")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_what_measures_ends_with_whoever_started_it(root: Path, ending: signal.Signals) -> None:
    (root / "perf/test_perf.py").write_text(SLOW)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", CALLER, str(root)], env=environment) as caller:
        began = root / "began"
        assert until(lambda: began.exists() and began.read_text().strip())
        measuring = int(began.read_text())
        assert lives(measuring)
        caller.send_signal(ending)
        caller.wait()
    assert until(lambda: not lives(measuring), 5.0)


def test_an_interpreter_that_is_a_script_measures_as_well(root: Path) -> None:
    script = root.parent / "python"
    script.write_text(f'#!/bin/sh\n{sys.executable} "$@"\n')
    script.chmod(0o755)
    step = PytestMeasure(LoopSettings(suite=("perf",), python=str(script)))
    assert list(step(root, Task(), root.parent / "run.jsonl").by_test) == [
        project.RELU,
        project.ADD,
    ]


def test_an_unfit_machine_that_has_become_fit_is_measured(root: Path) -> None:
    (root / "perf/test_perf.py").write_text(UNFIT)
    (root / "unfit").touch()
    journal = root.parent / "run.jsonl"
    step = PytestMeasure(LoopSettings(suite=("perf",)))
    with pytest.raises(UnfitError, match="the lock is held"):
        step(root, Task(), journal)
    (root / "unfit").unlink()
    assert list(step(root, Task(), journal).by_test) == [project.RELU, project.ADD]


def test_a_suite_that_can_be_imported_at_last_is_measured(root: Path) -> None:
    (root / "perf/test_perf.py").write_text(f"import not_yet_there\n{UNFIT}")
    journal = root.parent / "run.jsonl"
    step = PytestMeasure(LoopSettings(suite=("perf",)))
    with pytest.raises(BuildError, match="not_yet_there"):
        step(root, Task(), journal)
    (root / "not_yet_there.py").touch()
    assert list(step(root, Task(), journal).by_test) == [project.RELU, project.ADD]


def test_half_a_line_of_a_crash_does_not_spoil_the_next_one(root: Path) -> None:
    journal = root.parent / "run.jsonl"
    step = PytestMeasure(LoopSettings(suite=("perf",)))
    step(root, Task(), journal)
    # As if it had died while it noted the end of the second test.
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"teardown"' in line)
    journal.write_bytes(b"".join(lines[:last]) + lines[last][:20])
    assert read_journal(journal).done() == {project.RELU}
    assert list(step(root, Task(), journal).by_test) == [project.RELU, project.ADD]
