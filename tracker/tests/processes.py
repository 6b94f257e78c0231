"""Work in forked processes: many at once, or one that is killed at some moment."""

import os
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path


def fork(work: Callable[[], None]) -> int:
    """Start `work` in a process of its own and return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the child must never return into the test runner
        traceback.print_exc()
    finally:
        os._exit(code)


def all_at_once(works: Sequence[Callable[[], None]]) -> None:
    """Run every work in its own process; an error in one of them is an error here."""
    children = [fork(work) for work in works]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * len(works)


def killed_after(work: Callable[[], None], seconds: float, started: Path) -> None:
    """Run `work` until `seconds` after it has made the file `started`, then kill it outright."""
    child = fork(work)
    deadline = time.monotonic() + 30
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def lives(process: int) -> bool:
    """Return whether a process runs still: one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
