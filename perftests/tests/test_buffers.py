"""Guard zones, poison and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.arena import Arena
from perftests.harness.buffers import (
    GUARD_BYTES,
    POISON_NAN,
    POISON_NUMBER,
    BufferSets,
    GuardedTensor,
    allocate,
    same_bits,
)
from perftests.harness.errors import SettingError
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from perftests.harness.workload import Inputs

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("offset", [0, 1, 2, 3, 7])
def test_a_tensor_starts_at_its_offset_from_a_boundary(dtype: torch.dtype, offset: int) -> None:
    tensor = GuardedTensor((5, 7), dtype, CPU, offset=offset).tensor
    assert tensor.data_ptr() % 512 == offset * dtype.itemsize
    assert tensor.is_contiguous()
    assert tensor.shape == (5, 7)


@pytest.mark.parametrize("distance", [1, 16, GUARD_BYTES])
@pytest.mark.parametrize("side", ["before", "behind"])
def test_a_single_byte_in_a_guard_zone_is_seen(side: str, distance: int) -> None:
    buffer = GuardedTensor((33,), torch.uint8, CPU, offset=3)
    at = buffer.tensor.storage_offset() + (33 + distance - 1 if side == "behind" else -distance)
    buffer.tensor.as_strided((1,), (1,), at).fill_(0)
    found = buffer.trespass()
    assert found == f"1 bytes {side} the tensor changed, up to {distance} bytes away"


def test_a_full_write_leaves_the_guards_alone() -> None:
    buffer = GuardedTensor((33,), torch.float32, CPU, offset=1)
    buffer.tensor.fill_(0)
    buffer.poison(POISON_NAN)
    assert buffer.trespass() is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_poison_reads_as_nan_and_as_a_large_number(dtype: torch.dtype) -> None:
    buffer = GuardedTensor((4,), dtype, CPU)
    buffer.poison(POISON_NAN)
    assert buffer.tensor.isnan().all()
    buffer.poison(POISON_NUMBER)
    assert (buffer.tensor > 100).all()
    assert buffer.tensor.isfinite().all()


def test_untouched_elements_are_counted() -> None:
    buffer = GuardedTensor((10,), torch.float16, CPU, offset=1)
    buffer.poison(POISON_NUMBER)
    buffer.tensor[2:7] = 1.0
    assert buffer.untouched(POISON_NUMBER) == 5
    assert GuardedTensor((0,), torch.float16, CPU).untouched(POISON_NUMBER) == 0


def test_sets_hold_the_values_at_the_workloads_offsets() -> None:
    workload = relu_workload(n=9, input_offsets=(1,), output_offset=3)
    values = workload.make_inputs(1)
    sets = BufferSets(allocate(workload, values), 2)
    sets.load(values, POISON_NAN)
    first, second = sets
    assert torch.equal(first.input_tensors[0], values[0])
    assert first.input_tensors[0].data_ptr() % 16 == 4
    assert second.output_tensor.data_ptr() % 16 == 12
    assert first.changed_input(values) is None
    first.input_tensors[0][4] += 1
    assert first.changed_input(values) == 0


def test_offsets_must_match_the_inputs() -> None:
    workload = relu_workload(n=9, input_offsets=(1, 0))
    with pytest.raises(SettingError, match="2 offsets for 1 inputs"):
        allocate(workload, workload.make_inputs(1))


def test_one_question_finds_what_the_detailed_ones_name() -> None:
    workload = relu_workload(n=5)
    values = workload.make_inputs(1)
    buffers = allocate(workload, values)
    buffers.load(values)
    zones = [zone for b in (*buffers.inputs, buffers.output) for zone in b.changed_zones()]
    assert [bool(zone) for zone in zones] == [False] * 4
    assert buffers.intact(values)
    buffers.output.tensor.fill_(3.0)
    assert buffers.intact(values)
    buffers.inputs[0].tensor[4] += 1
    assert not buffers.intact(values)
    buffers.load(values)
    out = buffers.output_tensor
    out.as_strided((1,), (1,), out.storage_offset() + 5).fill_(1.0)
    assert not buffers.intact(values)
    assert [bool(zone) for zone in buffers.output.changed_zones()] == [False, True]


@pytest.mark.parametrize("which", ["input 0", "input 1", "the output"])
@pytest.mark.parametrize("part", ["before", "inside", "behind"])
def test_a_changed_byte_of_any_buffer_is_seen_and_named(which: str, part: str) -> None:
    values = (torch.arange(5.0), torch.arange(7.0))
    workload = relu_workload(n=9, input_offsets=(1, 2), output_offset=3)
    buffers = allocate(workload, values)
    buffers.load(values)
    named = dict(zip(("input 0", "input 1", "the output"), buffers.tensors, strict=True))
    raw = named[which].raw
    at = {"before": 0, "inside": GUARD_BYTES + 12, "behind": raw.numel() - 1}[part]
    assert buffers.intact_at_once(values)
    raw[at] ^= 1
    harmless = (which, part) == ("the output", "inside")
    assert buffers.intact_at_once(values) is harmless
    assert buffers.intact(values) is harmless
    if part == "inside":
        assert buffers.trespass() is None
        assert buffers.changed_input(values) == (None if harmless else int(which[-1]))
    else:
        assert (buffers.trespass() or "").startswith(f"{which}: 1 bytes {part} the tensor changed")


def test_equal_numbers_of_other_bits_are_a_change() -> None:
    zero = (torch.zeros(3),)
    buffers = allocate(relu_workload(n=3), zero)
    buffers.load(zero)
    buffers.inputs[0].tensor[1] = -0.0
    assert buffers.changed_input(zero) == 0
    assert not buffers.intact_at_once(zero)
    nan = torch.full((3,), torch.nan)
    assert same_bits(nan, nan.clone())


SPOILT = {
    "an input": lambda buffers: buffers.inputs[0].tensor[3:4],
    "the output": lambda buffers: buffers.output.tensor[8:],
    "the zone before an input": lambda buffers: buffers.inputs[0].raw[GUARD_BYTES - 1 :][:1],
    "the last byte behind the output": lambda buffers: buffers.output.raw[-1:],
}


@pytest.mark.parametrize("where", SPOILT)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_set_that_differs_anywhere_from_the_first_is_seen(which: int, where: str) -> None:
    workload = relu_workload(n=9, input_offsets=(1,), output_offset=3)
    values = workload.make_inputs(1)
    sets = BufferSets(allocate(workload, values), 3)
    sets.load(values, POISON_NUMBER)
    assert sets.same()
    assert sets.intact(values)
    assert sets.intact_at_once(values)
    assert [buffers.intact(values) for buffers in sets] == [True] * 3
    assert [buffers.output.untouched(POISON_NUMBER) for buffers in sets] == [9] * 3
    spoilt = SPOILT[where](list(sets)[which])
    spoilt.fill_(77)
    assert not sets.same()
    assert not sets.intact(values)
    assert not sets.intact_at_once(values)
    if which == 0 and "zone" in where:  # those of the first are written once
        return
    sets.load(values, POISON_NAN)
    assert sets.same(), "loading writes guard zones anew"


def test_what_all_sets_have_in_the_same_wrong_way_is_seen() -> None:
    values = relu_workload(n=9).make_inputs(1)
    sets = BufferSets(allocate(relu_workload(n=9), values), 3)
    sets.load(values, POISON_NUMBER)
    for buffers in sets:
        buffers.inputs[0].tensor[4] = 77.0
    assert sets.same()
    assert not sets.intact(values)
    assert not sets.intact_at_once(values)


@pytest.mark.parametrize("n", [9, 16])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_poison_fills_all_outputs_and_nothing_else(n: int, offset: int) -> None:
    """By words of eight bytes, where an output begins and ends on one."""
    workload = relu_workload(n=n, output_offset=offset)
    values = workload.make_inputs(1)
    sets = BufferSets(allocate(workload, values), 4)
    sets.load(values, POISON_NUMBER)
    sets.poison(POISON_NAN)
    assert [buffers.output.untouched(POISON_NAN) for buffers in sets] == [n] * 4
    assert sets.intact(values)


def test_no_two_sets_share_memory() -> None:
    workload = relu_workload(n=4099)
    sets = BufferSets(allocate(workload, workload.make_inputs(1)), 4)
    raws = sorted(
        (buffer.raw.data_ptr(), buffer.raw.numel()) for each in sets for buffer in each.tensors
    )
    assert len(raws) == 8
    ends = [start + size for start, size in raws]
    assert all(end <= start for end, (start, _) in zip(ends, raws[1:], strict=False))


def test_an_arena_gives_what_a_region_took_to_the_next_and_allocates_beyond_its_room() -> None:
    arena = Arena(4096, CPU)
    with arena.region():
        first = arena.rows(2, 700)
        assert first.shape == (2, 1024)
        assert {row.data_ptr() % 512 for row in first} == {0}
        with arena.region():
            inner = arena.rows(1, 2048)
            assert inner.data_ptr() == first[1].data_ptr() + 1024
        beyond = arena.rows(1, 2049)
        assert not 0 <= beyond.data_ptr() - first.data_ptr() < 4096
    assert arena.rows(1, 512).data_ptr() == first.data_ptr()


def test_sets_of_an_arena_lie_in_it() -> None:
    workload = relu_workload(n=4099)
    arena = Arena(1 << 22, CPU)
    values = workload.make_inputs(1)
    places = []
    for _ in range(2):
        with arena.region():
            sets = BufferSets(allocate(workload, values), 3, arena)
            sets.load(values, POISON_NAN)
            assert sets.same()
            places.append([buffers.output_tensor.data_ptr() for buffers in sets.others])
    assert places[0] == places[1]


@pytest.mark.parametrize("count", [4, 8, 16, 32])
def test_outputs_are_not_equally_far_from_their_inputs_at_all_places(count: int) -> None:
    """Nor is one input from another: bases and heads of other sizes had other distances."""

    def two(seed: int) -> Inputs:
        return (torch.ones(4099), torch.ones(4099))

    workload = relu_workload(n=4099, make_inputs=two)
    sets = BufferSets(allocate(workload, two(1)), count)
    for one, other in ((0, 2), (1, 2), (0, 1)):
        found = [[tensor.tensor.data_ptr() for tensor in each.tensors] for each in sets.others]
        assert len({each[other] - each[one] for each in found}) > (count - 1) // 2
        assert len({each[one] for each in found}) == count - 1, "each place is used once"


def test_an_arena_that_does_not_fit_is_empty_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = torch.empty

    def little(size: int, **given: Any) -> torch.Tensor:
        if size > 1 << 20:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return usual(size, **given)

    monkeypatch.setattr(torch, "empty", little)
    arena = Arena(1 << 21, CPU)
    assert (arena.size, arena.missing) == (0, 1 << 21)
    assert arena.rows(2, 700).shape == (2, 1024)
    assert (Arena(1 << 19, CPU).size, Arena(1 << 19, CPU).missing) == (1 << 19, 0)
    small = Arena(1 << 21, CPU, at_most=1 << 19)
    assert (small.size, small.missing) == (1 << 19, 3 << 19)
