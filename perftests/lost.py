"""Whether a test has lost this process its device, as an illegal address does.

A lost context answers every call with the error that lost it, so the next test would fail for what
another did. The driver itself is asked: whichever library launched, in a test with the fixture or
without it, and no context is made by asking.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.driver import DRIVER
from perftests.options import measures

if TYPE_CHECKING:
    from collections.abc import Generator

LOST: pytest.StashKey[str] = pytest.StashKey()
"""The test that lost this process its device, once one has."""
_load = ctypes.CDLL
"""Bound before a test could replace it: this runs between the phases of each."""
_UNUSED = frozenset({3, 4, 100})
"""Not initialised, shutting down, no device (CUresult of the driver's interface)."""


class LossWatch:
    """Asks after each phase of each test of a session that measures."""

    def __init__(self) -> None:
        self._measures = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave a session alone in which nothing is measured: its tests are no concern of ours."""
        self._measures = any(map(measures, session.items))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the first test after which the device is lost, and fail it where it passed."""
        report = yield
        ran = not report.skipped or hasattr(report, "wasxfail")
        if not (self._measures and ran) or LOST in item.config.stash:
            return report
        error = lost_by(loaded_driver())
        if error is not None:
            item.config.stash[LOST] = item.nodeid
            if report.passed:
                report.outcome = "failed"
                report.longrepr = f"the device was lost in the {report.when} of this test: {error}"
        return report


def loaded_driver() -> Any:
    """Return the driver's library where this process has loaded it, else None."""
    try:
        return _load(DRIVER, mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def lost_by(driver: Any) -> str | None:
    """Return the error of a device of this process that cannot be used any more, else None.

    Asked twice: an error that is told once and then gone has lost nothing.
    """
    if driver is None or not _code(driver):
        return None
    code = _code(driver)
    return _named(driver, code) if code else None


def _code(driver: Any) -> int:
    """Wait for every device that this process uses and return the first error, 0 for none."""
    count = ctypes.c_int()
    code = int(driver.cuDeviceGetCount(byref(count)))
    if code in _UNUSED:
        return 0
    for ordinal in range(count.value):
        code = code or _code_of(driver, ordinal)
    return code


def _code_of(driver: Any, ordinal: int) -> int:
    device, active = ctypes.c_int(), ctypes.c_int()
    code = driver.cuDeviceGet(byref(device), ordinal) or driver.cuDevicePrimaryCtxGetState(
        device, byref(ctypes.c_uint()), byref(active)
    )
    return int(code or (active.value and _wait(driver, device)))


def _wait(driver: Any, device: ctypes.c_int) -> int:
    """Wait for a device's primary context, which is made current for that and then put back."""
    context = ctypes.c_void_p()
    code = int(driver.cuDevicePrimaryCtxRetain(byref(context), device))
    if code:
        return code
    try:
        code = int(driver.cuCtxPushCurrent_v2(context))
        if not code:
            code = int(driver.cuCtxSynchronize())
            driver.cuCtxPopCurrent_v2(byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)
    return code


def _named(driver: Any, code: int) -> str:
    name = ctypes.c_char_p()
    driver.cuGetErrorName(code, byref(name))
    return f"{(name.value or b'CUDA error').decode()} ({code})"
