"""Commands that wait for their turn: small Python programs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracker.loop.processes import KILLED, TURN, Running
from tracker.tests.processes import lives

WAIT = "import os; f = int(os.environ['BANDWATCH_TURN']); os.write(f, b'r'); go = os.read(f, 1)\n"


@contextmanager
def running(tmp_path: Path, program: str, limit_s: float = 30.0) -> Iterator[Running]:
    with (
        (tmp_path / "log").open("ab") as log,
        Running((sys.executable, "-c", program), tmp_path, log.fileno(), limit_s, waits=True) as it,
    ):
        yield it


def run(program: str, folder: Path) -> int:
    with Running((sys.executable, "-c", program), folder, 2, 30.0) as process:
        return process.wait()


def test_one_that_waits_goes_on_only_when_it_is_let_go(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with running(tmp_path, f"{WAIT}open({str(done)!r}, 'w')") as process:
        assert process.ready()
        time.sleep(0.2)
        assert not done.exists()
        process.let_go()
        assert process.wait() == 0
    assert done.exists()


def test_it_is_ready_however_often_one_asks(tmp_path: Path) -> None:
    with running(tmp_path, WAIT) as process:
        assert process.ready()
        assert process.ready()


def test_one_that_ends_before_its_turn_is_not_ready_and_tells_its_code(tmp_path: Path) -> None:
    with running(tmp_path, "raise SystemExit(7)") as process:
        assert not process.ready()
        assert process.wait() == 7


def test_one_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    with running(tmp_path, "import time; time.sleep(60)", limit_s=0.5) as process:
        assert not process.ready()
        assert process.wait() == KILLED


def test_one_that_takes_too_long_after_its_turn_is_ended(tmp_path: Path) -> None:
    with running(tmp_path, f"{WAIT}import time; time.sleep(60)", limit_s=1.0) as process:
        assert process.ready()
        process.let_go()
        begun = time.monotonic()
        assert process.wait() == KILLED
        assert time.monotonic() - begun < 10


def test_the_time_that_it_waits_is_not_its_own(tmp_path: Path) -> None:
    with running(tmp_path, WAIT, limit_s=1.0) as process:
        assert process.ready()
        time.sleep(1.2)
        process.let_go()
        assert process.wait() == 0


def test_its_end_shows_though_what_it_started_holds_its_descriptor(tmp_path: Path) -> None:
    # A fork without exec keeps every descriptor open.
    program = f"{WAIT}import time\nif os.fork() == 0:\n    time.sleep(60)\n"
    with running(tmp_path, program) as process:
        assert process.ready()
        process.let_go()
        begun = time.monotonic()
        assert process.wait() == 0
        assert time.monotonic() - begun < 10


def test_nobody_else_holds_the_other_end(tmp_path: Path) -> None:
    # Were it passed on to the second, the first would not learn that nobody waits for it.
    ended = tmp_path / "ended"
    with running(tmp_path, f"{WAIT}open({str(ended)!r}, 'w').write(repr(go))") as first:
        assert first.ready()
        with running(tmp_path, WAIT) as second:
            assert second.ready()
            first._ours.close()
            assert first._child is not None
            assert first._child.wait(10) == 0
    assert ended.read_text() == "b''"


def test_a_command_without_a_turn_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN, "3")
    program = f"import os, sys; sys.exit({TURN!r} in os.environ)"
    assert run(program, tmp_path) == 0


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab") as log:
        assert Running(("no-such-command",), tmp_path, log.fileno(), 5.0).wait() == 127
    assert "No such file" in (tmp_path / "log").read_text()


def test_children_end_with_it(tmp_path: Path) -> None:
    note = tmp_path / "child"
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
    )
    run(program, tmp_path)
    deadline = time.monotonic() + 10
    while lives(int(note.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
