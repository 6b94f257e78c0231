"""The cut of a launch, checked against a plain count of what each block covers."""

from itertools import product

import pytest

from kernels.tiling import LINE_BYTES, VECTOR_BYTES, WAVE_BYTES, loads_per_thread, threads_of, tile


@pytest.mark.parametrize("sizes", [(4, 4), (2, 2), (4, 2), (2, 4), (1, 4)])
@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 100_003])
@pytest.mark.parametrize("loads", [1, 2, 4])
def test_the_tiles_cover_the_output_and_no_more(sizes: tuple[int, int], n: int, loads: int) -> None:
    in_size, out_size = sizes
    per_block = threads_of(loads) * loads * VECTOR_BYTES // max(sizes)
    for phase in range(0, 8192, out_size * 5):
        cut = tile([1 << 20], (1 << 22) + phase, n, sizes, (loads,), (loads,))
        first = -cut.shift
        assert -LINE_BYTES < first * out_size <= 0
        assert ((1 << 22) + phase + first * out_size) % LINE_BYTES == 0
        assert (cut.blocks - 1) * per_block + first < n <= cut.blocks * per_block + first
        assert in_size


@pytest.mark.parametrize("size", [4, 2])
def test_alike_types_are_shifted_exactly_when_phases_differ(size: int) -> None:
    for a, b, y in product(range(0, 16, size), repeat=3):
        cut = tile([4096 + a, 8192 + b], 16384 + y, 1000, (size, size))
        assert cut.shifted == (a != y or b != y)


@pytest.mark.parametrize("sizes", [(4, 2), (2, 4)])
def test_conversions_are_shifted_unless_a_granule_is_aligned_on_both_sides(
    sizes: tuple[int, int],
) -> None:
    in_size, out_size = sizes
    granule = 4
    for a, y in product(range(0, 16, in_size), range(0, 16, out_size)):
        cut = tile([4096 + a], 16384 + y, 1000, sizes)
        starts = (4096 + a - cut.shift * in_size) % (granule * in_size)
        assert cut.shifted == bool(starts)
        assert (16384 + y - cut.shift * out_size) % (granule * out_size) == 0


def test_loads_follow_the_waves() -> None:
    choices = (1, 2, 4)
    assert loads_per_thread(1, choices) == 1
    assert loads_per_thread(1 << 20, choices) == 1
    assert loads_per_thread(1 << 20, choices, inputs=2) == 2
    assert loads_per_thread(2 << 20, choices) == 2
    assert loads_per_thread(2 << 20, (1,)) == 1
    assert loads_per_thread(WAVE_BYTES, choices) == 2
    assert loads_per_thread(WAVE_BYTES + 1, choices) == 2
    assert loads_per_thread(16 << 20, choices) == 4
    assert loads_per_thread(64 << 20, choices) == 1
    # Where four are no choice, two help as far as four would; two inputs are twice as far along.
    assert loads_per_thread(16 << 20, (1, 2)) == 2
    assert loads_per_thread(32 << 20, (1, 2)) == 1
    assert loads_per_thread(16 << 20, (1, 2), inputs=2) == 1


@pytest.mark.parametrize("sizes", [(4, 4), (2, 2), (4, 2), (2, 4)])
@pytest.mark.parametrize("loads", [1, 2, 4])
def test_the_first_blocks_take_exactly_the_tiles_that_an_end_cuts(
    sizes: tuple[int, int], loads: int
) -> None:
    in_size, out_size = sizes
    granule = VECTOR_BYTES // max(sizes)
    elements = threads_of(loads) * loads * granule
    lengths = (1, granule, elements - 1, elements, elements + 1, 2 * elements, 7 * elements - 3)
    phases = [(a * in_size, y * out_size) for a, y in product((0, 1, 3), (0, 1, 2, 15, 16, 37, 63))]
    for n, (a, y), boundary in product(lengths, phases, (128, 1 << 20)):
        cut = tile([4096 + a], (1 << 20) + y, n, sizes, (loads,), (loads,), boundary=boundary)
        reach = granule if cut.shifted else 0
        starts = [block * elements - cut.shift for block in range(cut.blocks)]
        whole = {s for s in starts if s - reach >= 0 and s + elements + reach <= n}
        assert [b * elements - cut.before for b in range(cut.edges, cut.blocks)] == sorted(whole)
        # As the device maps the others: the last tiles before the first ones.
        tail = cut.before // elements
        assert cut.before % elements == cut.shift
        edges = [b - tail + (cut.blocks if b < tail else 0) for b in range(cut.edges)]
        assert sorted(starts[tile] for tile in edges) == sorted(set(starts) - whole)
        assert not tail or edges[0] >= cut.blocks - tail
