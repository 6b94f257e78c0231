"""What a case asks of the system, of NVML and of the device beside its launches, counted.

All of it is wall time in which a GPU has nothing to do. Whoever adds to it has to raise a limit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.chain import measure
from perftests.harness.lock import DeviceLock
from perftests.harness.processes import Processes
from perftests.harness.state import Watch
from perftests.tests import fake_board
from perftests.tests.fake_board import UUID, Asked
from perftests.tests.fake_nvml import FakeNvml
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from pathlib import Path

READINGS = 3
"""Before, during and after a window."""
CALLS_A_READING = 6
NAMES_WRITTEN = 4
"""One comes and goes for who checks, one for who times."""
SYSTEM = ("open", "pwrite", "ftruncate", "fchmod", "kill", "readlink")
OTHER = 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is asked of the system through `os`."""
    seen: Counter[str] = Counter()

    def counting(name: str) -> Any:
        usual = getattr(os, name)

        def call(*arguments: Any, **named: Any) -> Any:
            seen[name] += 1
            return usual(*arguments, **named)

        return call

    for name in SYSTEM:
        monkeypatch.setattr(os, name, counting(name))
    return seen


def known(folder: Path) -> DeviceLock:
    """Return a lock that this process has held before, with a context on the device."""
    lock = DeviceLock(UUID, timeout_s=5, folder=folder)
    lock.join()
    held(lock)
    return lock


def held(lock: DeviceLock) -> None:
    with lock.shared():
        pass
    with lock.alone():
        pass


def test_a_lock_that_nobody_else_wants_costs_a_few_calls(
    tmp_path: Path, calls: Counter[str]
) -> None:
    lock = known(tmp_path)
    calls.clear()
    held(lock)
    in_the_lock_too = 1  # for who has but that
    assert calls == {
        "open": NAMES_WRITTEN + 4,  # gate and lock, twice
        "pwrite": NAMES_WRITTEN + in_the_lock_too,
        "ftruncate": NAMES_WRITTEN // 2 + in_the_lock_too,
    }, "and nothing about processes, of which ours alone is there"


def test_a_reading_asks_nvml_six_times_and_the_system_never(
    tmp_path: Path, calls: Counter[str]
) -> None:
    processes, nvml = Processes(UUID, tmp_path), FakeNvml()
    processes.join()
    calls.clear()
    Watch(handle=1, nvml=nvml, processes=processes).read()
    assert len(nvml.calls) == CALLS_A_READING
    assert calls == {}


def test_a_reading_looks_for_fellows_where_others_compute_on_the_device(
    tmp_path: Path, calls: Counter[str]
) -> None:
    processes = Processes(UUID, tmp_path)
    processes.join()
    calls.clear()
    state = Watch(handle=1, nvml=FakeNvml(pids=(os.getpid(), OTHER)), processes=processes).read()
    assert state is not None
    assert state.other_processes == 1
    assert calls == {"open": 1}


def test_a_fork_is_a_process_of_its_own(tmp_path: Path) -> None:
    """What is asked of the system once must not be told of another process."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from perftests.harness.processes import Processes\n"
        "known = Processes('GPU-1', Path(sys.argv[1])); known.join()\n"
        "if os.fork() == 0: known.join(); assert len(known.of_this_run()) == 2; os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


MOST = {32: (14, 11, 145), 1: (14, 11, 140)}
"""By places: waits for the device, waits for a number from it, kernels beside the launches."""


@pytest.mark.parametrize("places", MOST)
def test_a_case_waits_for_the_device_and_asks_nvml_no_more_than_it_did(
    places: int, tmp_path: Path, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml, workload = FakeNvml(), relu_workload(n=256)
    session, board = fake_board.session(monkeypatch, tmp_path, nvml, places)
    assert measure(workload, session).broken is None
    for seen in (calls, nvml.calls):
        seen.clear()
    board.waits = 0
    with Asked() as asked:
        outcome = measure(workload, session)
    assert outcome.result["status"] == "ok"
    waits, numbers, kernels = MOST[places]
    assert board.waits <= waits
    assert asked.numbers <= numbers
    assert asked.kernels - asked.calls["clamp_min"] <= kernels
    assert len(nvml.calls) == READINGS * CALLS_A_READING
    assert calls["open"] == NAMES_WRITTEN + 4
