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

import torch

from perftests.harness.arena import free_bytes
from perftests.harness.driver import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perftests.harness.cuda import CudaDevice

_LEAST_CONTEXTS = 7
_SHARE, _CONTEXT_BYTES = 1 / 64, 6 << 20
"""Share of the device's memory that contexts take at most, and what one takes on an H200."""
_FREE_SHARE = 4 * _SHARE
"""Of a device with less to spare the buffers of cases need all."""
_RESOURCE_BYTES = 256
"""More than a CUdevResource takes: 144 in CUDA 13."""
_MULTIPROCESSORS = 1
_WITH_DEFAULT_STREAM = 1
_NON_BLOCKING = 1


def streams_of_contexts(device: CudaDevice, most: int) -> tuple[torch.cuda.Stream, ...]:
    """Return at most `most` streams of as many contexts; none where that would be a few alone.

    So it is where the device has little memory or little left, where the driver (before CUDA 12.5)
    makes no such contexts, and where it does not run on them what a measurement needs.
    """
    total = device.properties.total_memory
    room = int(_SHARE * total / _CONTEXT_BYTES)
    if room < _LEAST_CONTEXTS or free_bytes(device.device) < _FREE_SHARE * total:
        return ()
    handles = context_streams(device.device.index, min(most, room))
    streams = tuple(torch.cuda.ExternalStream(handle, device.device) for handle in handles)
    return streams if len(streams) >= _LEAST_CONTEXTS and _serves(device, streams[0]) else ()


def _serves(device: CudaDevice, stream: torch.cuda.Stream) -> bool:
    """Whether a flush, a launch and an event run on a stream."""
    try:
        with device.on(stream):
            device.flush(stream)
            device.kernels.empty()
            torch.cuda.Event(enable_timing=True).record(stream)
        torch.cuda.synchronize(device.device)
    except Exception:  # noqa: BLE001  the primary context serves whatever theirs lacks
        return False
    return True


@cache
def context_streams(ordinal: int, count: int) -> tuple[int, ...]:
    """Return the handles of at most `count` streams, one in each of as many green contexts.

    They live as long as the process, and the primary context has to exist. There are fewer where
    the device gives no more, and none where the driver knows no green contexts.
    """
    try:
        return tuple(islice(_made(ctypes.CDLL(DRIVER), ordinal), count))
    except (OSError, AttributeError):  # no driver, or none that exports such a call
        return ()


def _made(driver: Any, ordinal: int) -> Iterator[int]:
    """Make contexts and their streams until the driver refuses one."""
    describe, make = driver.cuDevResourceGenerateDesc, driver.cuGreenCtxCreate
    make_stream = driver.cuGreenCtxStreamCreate  # the newest of the three: asked for before any
    device, resource = ctypes.c_int(), ctypes.create_string_buffer(_RESOURCE_BYTES)
    refused = driver.cuDeviceGet(byref(device), ordinal)
    refused = refused or driver.cuDeviceGetDevResource(device, resource, _MULTIPROCESSORS)
    while not refused:
        what, context, stream = (ctypes.c_void_p() for _ in range(3))
        refused = (
            describe(byref(what), resource, 1)
            or make(byref(context), what, device, _WITH_DEFAULT_STREAM)
            or make_stream(byref(stream), context, _NON_BLOCKING, 0)
        )
        if not refused:
            yield int(stream.value or 0)
