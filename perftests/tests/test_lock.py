"""The lock of a device: alone or shared, with a limit and a named holder."""

from __future__ import annotations

import fcntl
import json
import os
import re
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


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def refusal(folder: Path, kind: str) -> str:
    """Return the message for one who cannot have the lock, a line."""
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=folder)
    with pytest.raises(UnfitError) as caught, getattr(lock, kind)():
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_the_holder_is_named_after_the_time_limit(tmp_path: Path, kind: str) -> None:
    process = holder(tmp_path, "alone")
    told = refusal(tmp_path, kind)
    ended(process)
    named = (
        f"process {process.pid} of user .* has held it to time since 20.* \\(-c {tmp_path} alone\\)"
    )
    assert re.match(f"cannot measure on GPU-1: {named}; it was not free within 0.05 s", told)
    assert told.endswith(": wait for that process or raise --bandwatch-lock-timeout")


def test_all_who_check_are_named_and_not_one_who_was_killed_while_it_timed(tmp_path: Path) -> None:
    dead = holder(tmp_path, "alone")
    ended(dead)
    sharing = [holder(tmp_path, "shared") for _ in range(2)]
    told = refusal(tmp_path, "alone")
    for process in sharing:
        assert f"process {process.pid} of user" in told
        ended(process)
    assert told.count("has held it to check since 20") == 2
    assert str(dead.pid) not in told


def test_one_who_was_killed_while_it_checked_is_not_named(tmp_path: Path) -> None:
    dead, alive = holder(tmp_path, "shared"), holder(tmp_path, "shared")
    ended(dead)
    told = refusal(tmp_path, "alone")
    ended(alive)
    assert f"process {alive.pid} of user" in told
    assert f"process {dead.pid} of user" not in told


def test_a_killed_holder_that_nobody_has_waited_for_is_not_named(tmp_path: Path) -> None:
    """A zombie has its number still, and no lock."""
    dead, alive = holder(tmp_path, "shared"), holder(tmp_path, "shared")
    dead.kill()
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    told = refusal(tmp_path, "alone")
    dead.wait()
    ended(alive)
    assert f"process {dead.pid} of user" not in told


def test_a_holder_that_left_no_name_is_told_as_such(tmp_path: Path) -> None:
    with (tmp_path / "bandwatch-GPU-1.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        told = refusal(tmp_path, "alone")
    assert f"without a name has held it (`fuser {tmp_path / 'bandwatch-GPU-1.lock'}` lists" in told


def test_who_waits_to_time_is_named_to_who_waits_behind(tmp_path: Path) -> None:
    checking = holder(tmp_path, "shared")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "alone"], stdout=subprocess.PIPE, text=True
    ) as waiting:
        deadline = time.monotonic() + 5
        told = ""
        while f"process {waiting.pid} " not in told:
            assert time.monotonic() < deadline, told
            lock = DeviceLock("GPU-1", timeout_s=0.02, folder=tmp_path)
            if is_refused(lock):
                told = refusal(tmp_path, "shared")
        waiting.kill()
    ended(checking)
    assert re.search(f"process {waiting.pid} of user [^,]* has waited to time on it since", told)
    assert f"process {checking.pid} of user" in told


def test_a_name_is_gone_with_its_holder(tmp_path: Path) -> None:
    """Else whoever waits for checks would be told of a process that has long let go."""
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    files = [tmp_path / f"bandwatch-GPU-1.{suffix}" for suffix in ("lock", "processes")]
    with lock.alone():
        assert all(json.loads(path.read_text())["pid"] == os.getpid() for path in files)
    assert [path.read_text().strip() for path in files] == ["", ""]
    with lock.shared():
        assert json.loads(files[1].read_text())["pid"] == os.getpid()
    assert [path.read_text().strip() for path in files] == ["", ""]


def test_what_a_killed_holder_left_is_cleared_by_the_next_even_one_that_checks(
    tmp_path: Path,
) -> None:
    ended(holder(tmp_path, "alone"))
    path = tmp_path / "bandwatch-GPU-1.lock"
    assert path.read_text(), "else there is nothing to clear"
    with DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path).shared():
        assert path.read_text() == ""


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
    with pytest.raises(UnfitError, match="has held it to check"), lock.alone():
        pass
    ended(process)


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
