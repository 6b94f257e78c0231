"""One timing at a time on each device: a lock by device UUID, held only while measuring.

Correctness work takes the lock shared, timing takes it alone. A gate in front keeps a stream of
shared holders from starving the one who waits to time. The system drops a lock when its process
dies, so nothing is left to clean up.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from perftests.harness.device_files import (
    device_file,
    locked_within,
    open_for_everyone,
    rewrite,
)
from perftests.harness.errors import UnfitError
from perftests.harness.processes import Doing, Processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

_POLL_SECONDS = 0.01


class DeviceLock:
    """The lock of one device, for all processes and users of this machine."""

    def __init__(self, uuid: str, *, timeout_s: float, folder: Path | None = None) -> None:
        self._uuid = uuid
        self._timeout_s = timeout_s
        self._path = device_file(uuid, "lock", folder)
        self._gate = device_file(uuid, "gate", folder)
        self._processes = Processes(uuid, folder)

    def join(self) -> None:
        """Tell that this process has a context on the device, until it ends."""
        self._processes.join()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device alone; raise UnfitError that names the holder after the time limit."""
        with (
            self._held(self._gate, fcntl.LOCK_EX),
            self._held(self._path, fcntl.LOCK_EX, waits=self._processes.doing(Doing.WAITS)) as file,
            self._processes.doing(Doing.TIMES) as line,
        ):
            _write(file, json.dumps(line.__dict__))  # for who has but the lock, such as doctor
            try:
                yield
            finally:
                _write(file, "")

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device together with others who do not time."""
        with ExitStack() as held:
            with self._held(self._gate, fcntl.LOCK_SH):
                file = held.enter_context(self._held(self._path, fcntl.LOCK_SH))
                _write(file, "")  # what one who timed and was killed has left
                held.enter_context(self._processes.doing(Doing.CHECKS))
            yield

    @contextmanager
    def _held(
        self, path: Path, kind: int, *, waits: AbstractContextManager[object] | None = None
    ) -> Iterator[int]:
        """Hold a file's lock; `waits` is entered while another has it, left before it is held."""
        try:
            file = open_for_everyone(path)
        except OSError as error:
            raise UnfitError(
                f"cannot lock {self._uuid}: {path} cannot be opened ({error.strerror}), expected a "
                "file that every user may read and write; remove it, as its owner or as root"
            ) from None
        try:
            if not locked_within(0.0, file, kind, poll_s=_POLL_SECONDS):
                with waits or nullcontext():
                    self._wait_for(file, kind)
            yield file
        finally:
            os.close(file)

    def _wait_for(self, file: int, kind: int) -> None:
        if not locked_within(self._timeout_s, file, kind, poll_s=_POLL_SECONDS):
            raise UnfitError(self._refusal())

    def _refusal(self) -> str:
        unknown = f"a process without a name has held it (`fuser {self._path}` lists it)"
        return (
            f"cannot measure on {self._uuid}: {self._processes.holders() or unknown}; it was not "
            f"free within {self._timeout_s:g} s: wait for that process or raise "
            "--bandwatch-lock-timeout"
        )


def _write(file: int, text: str) -> None:
    """Write the whole of a lock file, unless it can only be read."""
    with suppress(OSError):
        rewrite(file, text)
