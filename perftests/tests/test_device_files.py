"""Files of a device that every user of a machine may open, whatever its rules and their umask."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from perftests.harness.device_files import device_file, open_for_everyone
from perftests.harness.errors import UnfitError
from perftests.harness.lock import DeviceLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Open files as Linux does with fs.protected_regular, where each file is another user's."""
    seen: list[int] = []
    usual = os.open

    def protected(path: Path, flags: int, mode: int = 0o777) -> int:
        seen.append(flags)
        if flags & os.O_CREAT and not flags & os.O_EXCL and path.exists():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return usual(path, flags, mode)

    monkeypatch.setattr(os, "open", protected)
    return seen


def opened(path: Path) -> None:
    os.close(open_for_everyone(path))


def test_another_users_file_is_opened_where_the_system_protects_it(
    tmp_path: Path, flags: list[int]
) -> None:
    path = tmp_path / "a.lock"
    opened(path)
    assert [bool(flag & os.O_CREAT) for flag in flags] == [False, True]
    assert flags[1] & os.O_EXCL
    flags.clear()
    opened(path)
    assert [bool(flag & os.O_CREAT) for flag in flags] == [False]


@pytest.mark.usefixtures("flags")
def test_both_ways_of_holding_work_where_the_system_protects_files(tmp_path: Path) -> None:
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    for _ in range(2):
        with lock.alone():
            pass
        with lock.shared():
            pass


def test_a_file_that_another_makes_meanwhile_is_that_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    usual = os.open

    def overtaken(name: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and not path.exists():
            path.write_text("another's")
        return usual(name, flags, mode)

    monkeypatch.setattr(os, "open", overtaken)
    opened(path)
    assert path.read_text() == "another's"


def test_a_file_that_may_only_be_read_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.open

    def guarded(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR and path.exists():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return usual(path, flags, mode)

    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with lock.alone():
        pass
    monkeypatch.setattr(os, "open", guarded)
    other = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    with lock.alone(), pytest.raises(UnfitError, match="cannot measure on GPU-1"), other.shared():
        pass


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_of_who_made_it_does_not_matter(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        opened(tmp_path / "a.lock")
    finally:
        os.umask(before)
    assert (tmp_path / "a.lock").stat().st_mode & 0o777 == 0o666


def refused(path: Path) -> None:
    """Lay a link to a file of value in the place of the lock."""
    (path.parent / "value").write_text("value")
    path.symlink_to(path.parent / "value")


@pytest.mark.parametrize("lay", [refused, lambda path: path.mkdir()])
def test_what_is_no_file_in_the_locks_place_is_one_clear_line(
    tmp_path: Path, lay: Callable[[Path], None]
) -> None:
    path = device_file("GPU-1", "lock", tmp_path)
    lay(path)
    lock = DeviceLock("GPU-1", timeout_s=0.05, folder=tmp_path)
    for hold in (lock.alone, lock.shared):
        with pytest.raises(UnfitError) as caught, hold():
            pass
        line = str(caught.value)
        assert line.startswith(f"cannot lock GPU-1: {path} cannot be opened (")
        assert "expected a file that every user may read and write; remove it" in line
        assert "\n" not in line
    if path.is_symlink():
        assert path.read_text() == "value"


def test_what_is_no_regular_file_is_not_taken_for_one(tmp_path: Path) -> None:
    """A pipe would be waited for, for ever."""
    path = tmp_path / "bandwatch-x.lock"
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        open_for_everyone(path)
