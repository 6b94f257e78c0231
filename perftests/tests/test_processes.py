"""Which processes use a device and what they do there, though others die, pause or write rubbish."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness import cuda, device_files, processes, session
from perftests.harness.processes import Doing, Processes
from perftests.harness.settings import Settings
from perftests.harness.state import Watch
from perftests.tests.fake_cuda import Gpu
from perftests.tests.fake_nvml import FakeNvml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOINED = """
import sys
from pathlib import Path
from perftests.harness.processes import Processes
Processes("GPU-1", Path(sys.argv[1])).join()
print("joined", flush=True)
sys.stdin.read()
"""
RUN = processes._RUN
ALIEN = 1
"""A process of another call: it is always there."""


@pytest.fixture(autouse=True)
def a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, "this call")


@contextmanager
def joined(folder: Path, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """Have a child with a context on the device; `environ` replaces what it inherits."""
    with subprocess.Popen(
        [sys.executable, "-c", JOINED, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "joined\n"
        yield child


def others(folder: Path, *pids: int) -> int | None:
    """Return how many of NVML's processes are those of others."""
    seen = Watch(handle=1, nvml=FakeNvml(pids=pids), processes=Processes("GPU-1", folder))
    state = seen.read()
    assert state is not None
    return state.other_processes


def test_workers_of_one_call_are_not_others_of_each_other(tmp_path: Path) -> None:
    with joined(tmp_path) as one, joined(tmp_path) as two:
        listed = (os.getpid(), one.pid, two.pid)
        assert others(tmp_path, *listed) == 0
        assert others(tmp_path, *listed, ALIEN) == 1


def test_workers_in_a_container_are_taken_off_by_their_number(tmp_path: Path) -> None:
    """NVML lists them under the host's numbers: ours are not among them."""
    ours = (900_001, 900_002)
    assert others(tmp_path, *ours) == 1, "nobody else is known to be ours"
    with joined(tmp_path):
        assert others(tmp_path, *ours) == 0
        assert others(tmp_path, *ours, 900_003) == 1
        assert others(tmp_path) == 0


def test_a_worker_that_has_ended_is_no_longer_taken_off(tmp_path: Path) -> None:
    with joined(tmp_path) as child:
        child.kill()
        while processes._began(child.pid) != "ended":
            time.sleep(0.01)
        assert others(tmp_path, 900_001, 900_002) == 1, "a zombie"
    assert others(tmp_path, 900_001, 900_002) == 1


def test_one_who_ends_is_missed_though_the_file_stays_as_it_was(tmp_path: Path) -> None:
    known = Processes("GPU-1", tmp_path)
    with joined(tmp_path) as child:
        assert known.of_this_run() == {os.getpid(), child.pid}
        child.kill()
    assert known.of_this_run() == {os.getpid()}


def test_another_call_on_the_device_is_another_process(tmp_path: Path) -> None:
    with joined(tmp_path, **{RUN: "another call"}) as child:
        assert others(tmp_path, os.getpid(), child.pid) == 1
        assert others(tmp_path, 900_001, 900_002) == 1


def test_a_child_that_takes_no_turns_is_another_process(tmp_path: Path) -> None:
    """Only who uses the lock is known to be idle while we time."""
    with subprocess.Popen(["sleep", "60"]) as child:
        assert others(tmp_path, os.getpid(), child.pid) == 1
        child.kill()


def test_workers_of_xdist_and_their_children_are_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The workers are siblings; what a fresh process of theirs inherits lacks xdist's variables."""
    monkeypatch.delenv(RUN)
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "abc")
    assert processes._run() == "abc"
    monkeypatch.delenv("PYTEST_XDIST_TESTRUNUID")
    assert processes._run() == "abc"
    assert os.environ[RUN] == "abc"
    monkeypatch.delenv(RUN)
    assert processes._run().startswith(f"{os.getpid()}-")
    monkeypatch.delenv(RUN)


def test_a_session_tells_of_its_context_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that waits for its first turn is idle on the device already."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cuda, "CudaDevice", Gpu)
    for name in ("gpu_environment", "gpu_device"):
        monkeypatch.setattr(session, name, lambda *_: {})
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(uuid=b"GPU-uuid-0"))
    bench = session.Session(Settings()).bench(torch.device("cuda", 0))
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["pid"] == os.getpid()
    assert bench.watch.processes is not None
    assert bench.watch.processes.of_this_run() == {os.getpid()}
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 1'))
    line = json.loads(path.read_text())
    path.write_text(json.dumps({**line, "began": processes._began(1)}))
    assert bench.watch.processes.of_this_run() == {os.getpid(), 1}, "lock and watch share a file"


def test_joining_twice_is_one_line(tmp_path: Path) -> None:
    for _ in range(2):
        Processes("GPU-1", tmp_path).join()
    (line,) = (tmp_path / "bandwatch-GPU-1.processes").read_text().splitlines()
    assert json.loads(line)["pid"] == os.getpid()


def test_a_number_that_a_later_process_got_is_not_the_one_that_joined(tmp_path: Path) -> None:
    known = Processes("GPU-1", tmp_path)
    with joined(tmp_path) as child:
        assert known.of_this_run() == {os.getpid(), child.pid}
        path = tmp_path / "bandwatch-GPU-1.processes"
        line = json.loads(path.read_text())
        path.write_text(json.dumps({**line, "began": "1"}) + "\n")
        assert known.of_this_run() == {os.getpid()}


def test_what_cannot_be_read_is_left_out_and_no_message_carries_control_codes(
    tmp_path: Path,
) -> None:
    known = Processes("GPU-1", tmp_path)
    path = tmp_path / "bandwatch-GPU-1.processes"
    with known.doing(Doing.CHECKS) as line:
        good = {**line.__dict__, "command": "\x1b[31mred\n" + "x" * 5000}
        bad = [{**good, "pid": pid} for pid in (0, -1, 1 << 40, "1", None, True)]
        texts = ["", "[]", "no json", '{"pid": 1}', *map(json.dumps, [*bad, good])]
        path.write_bytes("\n".join(texts).encode() + b"\n\xff\n")
        told = known.holders()
    assert told is not None
    assert told.startswith(f"process {os.getpid()} of user ")
    assert told.count("process") == 1
    assert "[31mred" in told
    assert told.isprintable()
    assert len(told) < 400


def test_those_of_another_container_are_told_though_none_can_look_there(tmp_path: Path) -> None:
    """What one who was killed there has left goes once another times."""
    known = Processes("GPU-1", tmp_path)
    path = tmp_path / "bandwatch-GPU-1.processes"
    with known.doing(Doing.CHECKS) as line:
        elsewhere = {**line.__dict__, "key": "x", "pid": 999_999_999, "namespace": "pid:[1]"}
        path.write_text(json.dumps(elsewhere) + "\n")
        assert (known.holders() or "").startswith("another container's process 999999999 of user")
        assert known.of_this_run() == {os.getpid()}
    with known.doing(Doing.TIMES):
        assert "999999999" not in (known.holders() or "")


def test_a_file_that_another_keeps_or_that_cannot_be_had_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_files, "_MOMENT_SECONDS", 0.02)
    known = Processes("GPU-1", tmp_path)
    with (
        device_files.alone_for_a_moment(tmp_path / "bandwatch-GPU-1.processes"),
        known.doing(Doing.TIMES),
    ):
        assert known.holders() is None
        assert known.of_this_run() == {os.getpid()}
    nowhere = Processes("GPU-1", tmp_path / "missing")
    nowhere.join()
    assert nowhere.holders() is None


def test_many_holders_are_told_in_one_short_line(tmp_path: Path) -> None:
    known = Processes("GPU-1", tmp_path)
    with (
        known.doing(Doing.CHECKS),
        known.doing(Doing.CHECKS),
        known.doing(Doing.CHECKS),
        known.doing(Doing.CHECKS),
        known.doing(Doing.CHECKS),
    ):
        told = known.holders()
    assert told is not None
    assert told.count("has held it to check") == 3
    assert told.endswith(", 2 more")


@pytest.mark.parametrize("line", ["[" * 5000, '{"key": ' * 5000, "[]", "1", '"x"', "{}"])
def test_a_line_that_is_none_of_ours_is_left_out_and_written_over(
    line: str, tmp_path: Path
) -> None:
    known = Processes("GPU-1", tmp_path)
    known.join()
    (path,) = tmp_path.glob("*.processes")
    ours = path.read_text()
    path.write_text(f"{line}\n{ours}")
    assert known.of_this_run() == {os.getpid()}
    with known.doing(Doing.CHECKS):
        assert line not in path.read_text().splitlines()


def test_lines_of_other_containers_do_not_grow_without_end(tmp_path: Path) -> None:
    """None can tell whether those processes live: a holder's line would no longer be read."""
    known = Processes("GPU-1", tmp_path)
    known.join()
    (path,) = tmp_path.glob("*.processes")
    (mine,) = path.read_text().splitlines()
    foreign = [
        json.dumps({**json.loads(mine), "key": f"k{n}", "namespace": "pid:[1]"}) for n in range(300)
    ]
    path.write_text("\n".join([*foreign[:150], mine, *foreign[150:]])[: 1 << 16] + "\n")
    known.join()
    left = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line["namespace"] != "pid:[1]" for line in left) == 1
    assert len(left) == 1 + processes._MOST_FOREIGN
