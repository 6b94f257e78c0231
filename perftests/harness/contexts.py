"""Streams that belong to contexts of their own, each over the whole device.

A context makes all its launches up to 0.1 us faster or slower than the next one's, an empty kernel
as much as any other, for as long as it lives. A process has one, unless it makes green contexts:
those share the memory and the modules of the primary one, so what the caller launches runs there.
"""

from __future__ import annotations

import ctypes
from ctypes import byref
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = "libcuda.so.1"
_RESOURCE_BYTES = 256
"""More than a CUdevResource takes: 144 in CUDA 13."""
_MULTIPROCESSORS = 1
_WITH_DEFAULT_STREAM = 1
_NON_BLOCKING = 1


@cache
def context_streams(ordinal: int, count: int) -> tuple[int, ...]:
    """Return the handles of at most `count` streams, one in each of as many green contexts.

    They live as long as the process, and the primary context has to exist. There are fewer where
    the device gives no more, and none where the driver (before CUDA 12.4) knows no green contexts.
    """
    try:
        return tuple(islice(_made(ctypes.CDLL(DRIVER), ordinal), count))
    except (OSError, AttributeError):  # no driver, or none that exports such a call
        return ()


def _made(driver: Any, ordinal: int) -> Iterator[int]:
    """Make contexts and their streams until the driver refuses one."""
    device, resource = ctypes.c_int(), ctypes.create_string_buffer(_RESOURCE_BYTES)
    refused = driver.cuDeviceGet(byref(device), ordinal)
    refused = refused or driver.cuDeviceGetDevResource(device, resource, _MULTIPROCESSORS)
    while not refused:
        what, context, stream = (ctypes.c_void_p() for _ in range(3))
        refused = (
            driver.cuDevResourceGenerateDesc(byref(what), resource, 1)
            or driver.cuGreenCtxCreate(byref(context), what, device, _WITH_DEFAULT_STREAM)
            or driver.cuGreenCtxStreamCreate(byref(stream), context, _NON_BLOCKING, 0)
        )
        if not refused:
            yield int(stream.value or 0)
