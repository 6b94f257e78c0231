"""What has to be bound before a test's module, which is measured code, is imported.

The host's clocks are: the plugin imports them when pytest loads it. What times on a GPU comes with
torch, which takes seconds to import, so it is imported at the start of sessions that will use it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import perftests.harness.clock  # noqa: F401  binds the host's clocks now
from perftests.harness.driver import DRIVER
from perftests.harness.errors import HarnessError

if TYPE_CHECKING:
    import pytest

_TIMERS = ("chain", "cuda", "event_clock")


def bind_timers(config: pytest.Config) -> None:
    """Import what times on a GPU where this process is going to; tests are collected after that."""
    asked = config.getoption("--bandwatch-device")
    if config.option.collectonly or _distributes(config) or asked == "cpu" or not has_driver():
        return
    with suppress(ImportError, HarnessError):  # whoever measures is told
        for name in _TIMERS:
            import_module(f"perftests.harness.{name}")


def _distributes(config: pytest.Config) -> bool:
    """Whether this process leaves the tests to workers of pytest-xdist."""
    return not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no"


def has_driver() -> bool:
    """Whether an NVIDIA driver is installed."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return False
    return True
