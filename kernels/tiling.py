"""How an elementwise launch is cut: vectors a thread, tiles aligned on the output, one launch.

Pure integers, no torch: the sanitizer runs use it too. `device/elementwise.cuh` is the other half.
"""

from collections.abc import Sequence
from typing import NamedTuple

# Loads a thread follow the size, threads the loads, by measurement on an H200 (figures in
# docs/results/kernel-tuning.md). A wave is one 16-byte load from each resident thread of 132 SMs,
# 4.3 MB. Between one and about four waves it pays to have the whole input in flight at once: four
# loads are 6 % faster at 16 MiB and 5 % slower at 256 MiB. Beyond, one load is best. Up to a wave
# it is two, as long as the inputs leave every SM three blocks: below, more blocks are better.
THREADS, FEWER_THREADS = 128, 64  # fewer by four loads a thread
PLAIN_THREADS = 256  # of the kernels that articles start from: a thread an element or a pack
VECTOR_BYTES = 16
WAVE_BYTES = 132 * 2048 * VECTOR_BYTES
FEW_WAVES = 4
BUSY_BYTES = 3 * 132 * THREADS * 2 * VECTOR_BYTES  # two loads a thread, three blocks for each SM
# Tiles begin on lines of the output. On multiples of their own size, as they once did, most tensors
# would have a cut tile at either end.
LINE_BYTES = 128


class Tiling(NamedTuple):
    """A launch: are inputs shifted, loads a thread, threads, blocks, elements before the output.

    The first `edges` blocks take the tiles that an end of the data cuts; of the others, block b has
    the tile that begins at element b * tile - `before`.
    """

    shifted: bool
    loads: int
    threads: int
    blocks: int
    shift: int
    before: int
    edges: int


def loads_per_thread(nbytes: int, choices: Sequence[int], inputs: int = 1) -> int:
    """Return the loads a thread of `choices` (rising) for `inputs` inputs of `nbytes` each.

    The fewest that take an input in one wave, but two where that keeps every SM busy; the most
    while the inputs together are a few waves long; beyond, the fewest there are.
    """
    fitting = [loads for loads in choices if nbytes <= loads * WAVE_BYTES]
    if not fitting:
        return choices[-1] if nbytes * inputs <= FEW_WAVES * WAVE_BYTES else choices[0]
    two = 2 in fitting and fitting[0] < 2 and nbytes * inputs >= BUSY_BYTES
    return 2 if two else fitting[0]


def threads_of(loads: int) -> int:
    """Return the threads of a block whose threads have so many loads each."""
    return FEWER_THREADS if loads == 4 else THREADS


def tile(
    inputs: Sequence[int],
    output: int,
    n: int,
    sizes: tuple[int, int],
    choices: Sequence[int] = (1,),
    shifted_choices: Sequence[int] = (1,),
    threads: int | None = None,
    boundary: int = LINE_BYTES,
) -> Tiling:
    """Return the launch for `n` elements at the addresses `inputs` and `output`.

    `sizes` are the bytes of an input and an output element; the wider moves 16 bytes a granule.
    Tiles begin on multiples of `boundary` bytes, a power of two; `threads` are those of the
    loads unless given.
    """
    in_size, out_size = sizes
    wider = max(sizes)
    granule = VECTOR_BYTES // wider
    # Where an input must stand, modulo its granule, to be aligned when the output is.
    phase = output % (granule * out_size) // out_size * in_size
    in_granule = granule * in_size
    shifted = False
    for address in inputs:
        if (address - phase) % in_granule:
            shifted = True
    loads = loads_per_thread(n * wider, shifted_choices if shifted else choices, len(inputs))
    threads = threads or threads_of(loads)
    tile_bytes = threads * granule * out_size * loads
    shift_bytes = output % min(boundary, tile_bytes)
    blocks = -(-(shift_bytes + n * out_size) // tile_bytes)
    shift, elements = shift_bytes // out_size, tile_bytes // out_size
    # A shifted load touches the granule beside its own, which must be data too.
    reach = granule if shifted else 0
    head = -(-(shift + reach) // elements)
    whole = (shift + n - reach) // elements - head
    tail = blocks - head - whole if whole > 0 else 0
    edges = head + tail if whole > 0 else blocks
    return Tiling(shifted, loads, threads, blocks, shift, shift + tail * elements, edges)
