"""Buffers between guard zones, poisoned before each run.

A tensor starts at a chosen element offset from a 512-byte boundary. What lies before and behind it
is a pattern that no kernel may change; what lies in an output before a run is a pattern that no
correct kernel leaves there.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import torch

from perftests.harness.arena import Arena, aligned_rows, scattered
from perftests.harness.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from perftests.harness.workload import Inputs, Workload

GUARD_BYTES = 64 * 1024
"""Wide enough for a whole block of 1024 threads that each write four 16-byte vectors."""
POISON_NAN = 0xFF
"""Reads as NaN in every floating-point type: an element left untouched cannot pass as a number."""
POISON_NUMBER = 0x5A
"""Reads as a large number (1.5e16 in float32, 203 in float16): it cannot pass as a NaN."""
_GUARD_OUTPUT = 0xC3
_GUARD_INPUT = 0xFF
"""Reads as NaN: a result computed from beyond an input's end shows."""
_WORD = 8
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of a contiguous tensor as integers, of the same width up to 8 bytes."""
    tensor = tensor if tensor.dim() else tensor.view(1)  # wider ones become several bytes
    return tensor.view(_BITS.get(tensor.element_size(), torch.uint8))


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two contiguous tensors of one type hold the same bits, NaN payloads included."""
    return torch.equal(bits(left), bits(right))


class GuardedTensor:
    """One tensor with a guard zone on each side.

    Shapes: `tensor` has the given shape, contiguous, `offset` elements from a 512-byte boundary;
    `raw` has all of its bytes, guard zones and all.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        *,
        offset: int = 0,
        guard: int = _GUARD_OUTPUT,
    ) -> None:
        before = GUARD_BYTES + offset * dtype.itemsize
        size = prod(shape) * dtype.itemsize
        self._span = slice(before, before + size)
        self._dtype, self._shape, self._guard = dtype, tuple(shape), guard
        rows = aligned_rows(1, before + size + GUARD_BYTES, device)
        self.move_to(*self._in(rows)[0])
        _fill(self._front, guard)
        _fill(self._back, guard)

    def _in(self, rows: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Return of each row its bytes, those of the tensor among them, and the tensor.

        All rows at once: each view takes the host a microsecond or two.
        """
        contents = rows[:, self._span]
        tensors = contents.view(self._dtype).view(len(rows), *self._shape)
        return list(zip(rows.unbind(), contents.unbind(), tensors.unbind(), strict=True))

    @property
    def _front(self) -> torch.Tensor:
        return self.raw[: self._span.start]

    @property
    def _back(self) -> torch.Tensor:
        return self.raw[self._span.stop :]

    def at(self, rows: torch.Tensor) -> list[GuardedTensor]:
        """Return the same tensor in each row, as long as this one's bytes, not yet written."""
        others = [copy(self) for _ in range(len(rows))]
        for other, place in zip(others, self._in(rows), strict=True):
            other.move_to(*place)
        return others

    def move_to(self, raw: torch.Tensor, content: torch.Tensor, tensor: torch.Tensor) -> None:
        """Lie in the memory of `raw` from now on, by the views of it, and write nothing."""
        self.raw, self._content, self.tensor = raw, content, tensor

    def poison(self, pattern: int) -> None:
        """Fill every byte of the tensor, on the current stream."""
        self._content.fill_(pattern)

    def poison_in(self, rows: torch.Tensor, pattern: int) -> bool:
        """Fill every byte of the tensor in each row, on the current stream, by one kernel.

        Whether that can be: by words of 8 bytes alone is it as fast as one row after the other.
        """
        words = slice(self._span.start // _WORD, self._span.stop // _WORD)
        if self._span.start % _WORD or self._span.stop % _WORD:
            return False
        word = int.from_bytes(bytes([pattern]) * _WORD, "little", signed=True)
        rows.view(torch.int64)[:, words].fill_(word)
        return True

    def untouched(self, pattern: int) -> int:
        """Return how many elements still hold the poison."""
        if not self._content.numel():
            return 0
        width = self.tensor.element_size()
        same = (self._content.view(-1, width) == pattern).all(dim=1)
        return int(same.sum().item())

    def changed_zones(self) -> list[torch.Tensor]:
        """Return for each guard zone, on its device, whether any byte of it was written."""
        return [(zone != self._guard).any() for zone in (self._front, self._back)]

    def trespass(self) -> str | None:
        """Return where a guard zone was written, or None when both are intact."""
        for name, zone in (("before", self._front), ("behind", self._back)):
            changed, first, last = _changed(zone, self._guard)
            if changed:
                far = zone.numel() - first if name == "before" else last + 1
                return f"{changed} bytes {name} the tensor changed, up to {far} bytes away"
        return None


def _fill(zone: torch.Tensor, pattern: int) -> None:
    """Fill a guard zone; on a CPU without waking torch's threads, which costs milliseconds."""
    if zone.device.type == "cpu":
        zone.numpy().fill(pattern)
    else:
        zone.fill_(pattern)


def _changed(zone: torch.Tensor, pattern: int) -> tuple[int, int, int]:
    """Return how many bytes differ from the pattern, and the first and last of them."""
    if zone.device.type == "cpu":
        hit = np.flatnonzero(zone.numpy() != pattern)
    else:
        differ = zone != pattern
        if not bool(differ.any().item()):
            return 0, 0, 0
        hit = differ.nonzero().flatten().cpu().numpy()
    return (len(hit), int(hit[0]), int(hit[-1])) if len(hit) else (0, 0, 0)


@dataclass(frozen=True)
class BufferSet:
    """The inputs and the output of one launch."""

    inputs: tuple[GuardedTensor, ...]
    output: GuardedTensor

    @property
    def tensors(self) -> tuple[GuardedTensor, ...]:
        """The inputs and the output, guarded."""
        return (*self.inputs, self.output)

    @property
    def input_tensors(self) -> Inputs:
        """The inputs as the callable gets them."""
        return tuple(buffer.tensor for buffer in self.inputs)

    @property
    def output_tensor(self) -> torch.Tensor:
        """The output as the callable gets it."""
        return self.output.tensor

    def load(self, values: Inputs) -> None:
        """Copy fresh values into the same addresses, on the current stream."""
        for buffer, value in zip(self.inputs, values, strict=True):
            buffer.tensor.copy_(value)

    def changed_input(self, values: Inputs) -> int | None:
        """Return the index of the first input that differs, bit by bit, from what was loaded."""
        for index, (buffer, value) in enumerate(zip(self.inputs, values, strict=True)):
            if not same_bits(buffer.tensor, value.contiguous()):
                return index
        return None

    def intact(self, values: Inputs) -> bool:
        """Whether all guard zones and inputs are as they were made."""
        if self.output.tensor.device.type == "cpu":
            return self.trespass() is None and self.changed_input(values) is None
        return self.intact_at_once(values)

    def intact_at_once(self, values: Inputs) -> bool:
        """Whether all guard zones and inputs are as they were made, asked of the device once."""
        return not bool(torch.stack(self.changes(values)).any().item())

    def changes(self, values: Inputs) -> list[torch.Tensor]:
        """Return on the device for each guard zone and each input whether it was changed."""
        changed = [zone for buffer in self.tensors for zone in buffer.changed_zones()]
        for buffer, value in zip(self.inputs, values, strict=True):
            changed.append((bits(buffer.tensor) != bits(value.contiguous())).any())
        return changed

    def trespass(self) -> str | None:
        """Return which guard zone was written, or None when all are intact."""
        named = [(f"input {index}", buffer) for index, buffer in enumerate(self.inputs)]
        for name, buffer in (*named, ("the output", self.output)):
            hit = buffer.trespass()
            if hit:
                return f"{name}: {hit}"
        return None


class BufferSets:
    """A first buffer set, and others that hold the same at other places in memory.

    What is written into the first is copied to the others as a whole, guard zones too: a launch
    that leaves the same bits in all of them needs to be looked into in one.
    """

    def __init__(self, first: BufferSet, count: int = 1, arena: Arena | None = None) -> None:
        self.first = first
        arena = arena or Arena(0, first.output.raw.device)
        self._rows = [arena.rows(count - 1, buffer.raw.numel()) for buffer in first.tensors]
        arrays = [
            [places[row] for row in scattered(len(places), index)]
            for index, places in enumerate(map(GuardedTensor.at, first.tensors, self._rows))
        ]
        self.others = tuple(BufferSet(each[:-1], each[-1]) for each in zip(*arrays, strict=True))
        self._follow()

    def __iter__(self) -> Iterator[BufferSet]:
        return iter((self.first, *self.others))

    def _follow(self) -> None:
        if self.others:
            for first, rows in self._pairs():
                rows.copy_(first)

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Give each tensor's bytes in the first set, and in the others, as words of 8 bytes."""
        for buffer, rows in zip(self.first.tensors, self._rows, strict=True):
            yield buffer.raw.view(torch.int64), rows.view(torch.int64)

    def load(self, values: Inputs, poison: int) -> None:
        """Put values into all inputs and poison all outputs, on the current stream."""
        self.first.load(values)
        self.first.output.poison(poison)
        self._follow()

    def poison(self, pattern: int) -> None:
        """Fill every output, on the current stream."""
        output = self.first.output
        output.poison(pattern)
        if self.others and not output.poison_in(self._rows[-1], pattern):
            for buffers in self.others:
                buffers.output.poison(pattern)

    def same(self) -> bool:
        """Whether the others hold the first's bits, guard zones too; asks the device once."""
        return not self.others or not bool(torch.stack(self._differences()).any().item())

    def intact(self, values: Inputs) -> bool:
        """Whether all are as the first was made but for the output, and alike in that.

        Asks a GPU once.
        """
        if self.first.output.tensor.device.type == "cpu":
            return self.first.intact(values) and self.same()
        return self.intact_at_once(values)

    def intact_at_once(self, values: Inputs) -> bool:
        """Whether all are so, asked of the device once."""
        if not self.others:
            return self.first.intact_at_once(values)
        found = [*self.first.changes(values), *self._differences()]
        return not bool(torch.stack(found).any().item())

    def _differences(self) -> list[torch.Tensor]:
        """Return on the device for each tensor whether the others differ from the first."""
        return [(rows != first).any() for first, rows in self._pairs()]


def allocate(workload: Workload, values: Inputs) -> BufferSet:
    """Return guarded buffers for the workload on the values' device; inputs are not yet loaded."""
    offsets = workload.input_offsets or (0,) * len(values)
    if len(offsets) != len(values):
        raise SettingError(
            f"cannot place the inputs of {workload.label}: {len(offsets)} offsets for "
            f"{len(values)} inputs; give one offset an input"
        )
    device = values[0].device
    return BufferSet(
        tuple(
            GuardedTensor(value.shape, value.dtype, device, offset=offset, guard=_GUARD_INPUT)
            for value, offset in zip(values, offsets, strict=True)
        ),
        GuardedTensor(
            workload.output_shape, workload.output_dtype, device, offset=workload.output_offset
        ),
    )


def footprint_bytes(workload: Workload, values: Inputs) -> int:
    """Return the bytes that one set's tensors hold, guard zones not counted."""
    output = prod(workload.output_shape) * workload.output_dtype.itemsize
    return output + sum(value.numel() * value.element_size() for value in values)
