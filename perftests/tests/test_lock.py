"""The lock of a device: alone or shared, with a limit and a named holder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from perftests.harness.errors import UnfitError
from perftests.harness.lock import DeviceLock

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
from pathlib import Path
from perftests.harness.lock import DeviceLock
lock = DeviceLock("GPU-1", timeout_s=5, folder=Path(sys.argv[1]))
with getattr(lock, sys.argv[2])():
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path, kind: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock, and wait until it does."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_holder_is_named_after_the_time_limit(tmp_path: Path) -> None:
    process = holder(tmp_path, "alone")
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with (
        pytest.raises(UnfitError, match=f"process {process.pid} of user .* since 20"),
        lock.alone(),
    ):
        pass
    process.kill()
    process.wait()


def test_a_name_is_gone_with_its_holder(tmp_path: Path) -> None:
    """Else whoever waits for checks would be told of a process that has long let go."""
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with lock.alone():
        assert f'"pid": {os.getpid()}' in (tmp_path / "bandwatch-GPU-1.lock").read_text()
    assert (tmp_path / "bandwatch-GPU-1.lock").read_text() == ""


def test_a_killed_holder_leaves_the_device_free(tmp_path: Path) -> None:
    process = holder(tmp_path, "alone")
    process.kill()
    process.wait()
    with DeviceLock("GPU-1", timeout_s=1, folder=tmp_path).alone():
        pass


def test_correctness_work_shares_and_timing_waits_for_it(tmp_path: Path) -> None:
    process = holder(tmp_path, "shared")
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with lock.shared():
        pass
    with pytest.raises(UnfitError, match="correctness work shares the lock"), lock.alone():
        pass
    process.kill()
    process.wait()


def is_refused(lock: DeviceLock) -> bool:
    try:
        with lock.shared():
            return False
    except UnfitError:
        return True


def test_who_waits_to_time_comes_before_correctness_work_that_begins_later(
    tmp_path: Path,
) -> None:
    """Else a stream of overlapping checks would keep the device for ever."""
    timed: list[bool] = []
    patient = DeviceLock("GPU-1", timeout_s=20, folder=tmp_path)
    hasty = DeviceLock("GPU-1", timeout_s=0, folder=tmp_path)

    def waits_to_time() -> None:
        with patient.alone():
            timed.append(is_refused(hasty))

    with patient.shared():
        waiter = threading.Thread(target=waits_to_time)
        waiter.start()
        deadline = time.monotonic() + 10
        while not is_refused(hasty):
            assert time.monotonic() < deadline, "later checks went on"
            time.sleep(0.01)
        assert timed == []
    waiter.join()
    assert timed == [True]
    assert not is_refused(hasty)


def test_another_device_is_not_held(tmp_path: Path) -> None:
    with (
        DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path).alone(),
        DeviceLock("GPU-2", timeout_s=0.05, folder=tmp_path).alone(),
    ):
        pass


def test_it_is_free_again_after_use_and_after_an_error(tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with pytest.raises(RuntimeError), lock.alone():
        raise RuntimeError
    with lock.alone():
        pass
    with lock.shared():
        pass


def test_the_lock_file_is_open_to_all_users(tmp_path: Path) -> None:
    with DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path).alone():
        modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {0o666}


def test_waiting_ends_when_the_holder_does(tmp_path: Path) -> None:
    process = holder(tmp_path, "alone")
    began = time.monotonic()
    os.kill(process.pid, 9)
    with DeviceLock("GPU-1", timeout_s=10, folder=tmp_path).alone():
        assert time.monotonic() - began < 5
    process.wait()
