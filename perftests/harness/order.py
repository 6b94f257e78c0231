"""Whether work follows the launch stream: a launch is looked at while that stream is held.

What the hold needs is checked, not assumed: that the host enqueues all of it in time, and that
another stream runs beside a held one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import torch

from perftests.harness.buffers import POISON_NAN
from perftests.harness.events import Event as _Event
from perftests.harness.events import query as _query
from perftests.harness.events import record as _record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.buffers import BufferSet
    from perftests.harness.cuda import CudaDevice

_HOLDS_NS = (300_000, 3_000_000, 30_000_000)
"""How long the stream is held, and how long again where the hold was over too soon."""
_SLOW = (
    "whether the work runs in the order of the launch stream was not seen: in 30 ms the host had "
    "not enqueued the launch; it waits for the device, or does much else besides launching"
)
_SERIALISING = ("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING")


@dataclass(frozen=True)
class Look:
    """An output as its stream sees it right after a launch.

    `unseen` says why work on another stream would look the same, where it would.
    """

    output: torch.Tensor
    unseen: str | None = None


def look(
    device: CudaDevice,
    launch: Callable[[], object],
    buffers: BufferSet,
    stream: torch.cuda.Stream,
) -> Look:
    """Launch behind a held stream and copy the output as that stream sees it right after.

    The output is poisoned while the stream is held: work that went to another stream is done
    by then and wiped out, or comes too late for the copy. Where the copy goes is made before: an
    allocation waits for the device, and would give such work the time it lacks, as a host does that
    comes after the hold's end.
    """
    seen = torch.empty_like(buffers.output_tensor)
    for hold_ns in _HOLDS_NS:
        device.synchronize()
        held = _Event()
        with device.on(stream):
            device.kernels.spin(hold_ns)
            _record(held, stream)
            buffers.output.poison(POISON_NAN)
            launch()
            seen.copy_(buffers.output_tensor)
            is_in_time = not _query(held)
            device.synchronize()
        if is_in_time:
            return Look(seen)
    return Look(seen, _SLOW)


def why_blind(
    device: CudaDevice, held_stream: torch.cuda.Stream, others: Sequence[torch.cuda.Stream]
) -> str | None:
    """Return why no look tells anything on this device: streams wait for each other there.

    None where a kernel on one of the others is done while one waits on the held one.
    """
    tries = product(_HOLDS_NS, others)
    if any(_runs_beside(device, held_stream, other, hold_ns) for hold_ns, other in tries):
        return None
    found = [f"{name}={os.environ[name]}" for name in _SERIALISING if name in os.environ]
    advice = f"unset {' and '.join(found)}" if found else "end the tool that serialises them"
    return (
        "whether work runs in the order of its launch stream cannot be seen: a kernel waits for "
        f"those on other streams, expected it to run beside them; {advice}"
    )


def _runs_beside(
    device: CudaDevice, held_stream: torch.cuda.Stream, other: torch.cuda.Stream, hold_ns: int
) -> bool:
    """Whether a kernel is done while another stream is held with a kernel waiting behind."""
    held, done = _Event(), _Event()
    device.synchronize()
    with device.on(held_stream):
        device.kernels.spin(hold_ns)
        _record(held, held_stream)
        device.kernels.empty()
    with device.on(other):
        device.kernels.empty()
        _record(done, other)
    is_over = False
    while not is_over and not _query(done):
        is_over = _query(held)
    is_over = is_over or _query(held)
    device.synchronize()
    return not is_over
