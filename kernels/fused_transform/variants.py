"""Which CUDA kernel, at which size: the variants, what they need, and the choice of cuda_vector.

The numbers behind the choices are in docs/results/fused-transform-tuning.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch

from kernels.fused_transform.layout import Rows, even_part

NAMES = {torch.float32: "float", torch.float16: "__half", torch.uint8: "Byte"}
MAX_CHANNELS = 8  # beyond, a thread's pixels no longer fit its registers: a thread a pixel instead
VECTOR_BYTES = 16
# What a block of cuda_vector reads or writes at most: 3 KiB win on an H200, and 6 KiB lose.
TILE_BYTES = 4096
WARP_BYTES = 1536  # what a block of one warp reads at least; 48 KiB on an SM


class Types(NamedTuple):
    """What one compilation serves: element types, channels of a pixel of x and of y."""

    source: torch.dtype
    target: torch.dtype
    channels_in: int
    channels_out: int

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options that pixels.cuh asks for."""
        return (
            f"-DIN={NAMES[self.source]}",
            f"-DOUT={NAMES[self.target]}",
            f"-DCHANNELS_IN={self.channels_in}",
            f"-DCHANNELS_OUT={self.channels_out}",
        )

    @property
    def in_pixel(self) -> int:
        """Bytes of a pixel of x."""
        return self.channels_in * self.source.itemsize

    @property
    def out_pixel(self) -> int:
        """Bytes of a pixel of y."""
        return self.channels_out * self.target.itemsize

    @property
    def vector_pixels(self) -> int:
        """The pixels whose outputs fill whole vectors, one for each output channel."""
        return VECTOR_BYTES // self.target.itemsize

    @property
    def vectors_possible(self) -> bool:
        """Whether kernels by vectors exist for so many channels."""
        return max(self.channels_in, self.channels_out) <= MAX_CHANNELS


@dataclass(frozen=True)
class Variant:
    """One way to launch a kernel of cuda.cu.

    A thread of a kernel by vectors has `vectors` for each output channel.
    """

    kernel: str
    threads: int
    vectors: int = 1

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options that make this kernel exist."""
        threads = f"-D{self.kernel.upper()}_THREADS={self.threads}"
        return (threads,) if self.kernel == "scalar" else (threads, f"-DVECTORS={self.vectors}")

    @property
    def has_shifted(self) -> bool:
        """Whether inputs off their vectors are another kernel's, named ..._shifted."""
        return self.kernel not in {"scalar", "direct"}

    def blocks(self, types: Types, pixels: int) -> int:
        """Return the blocks of a row of `pixels`."""
        per_thread = self.vectors * types.vector_pixels
        if self.kernel == "scalar":
            per_thread = 1
        elif self.kernel == "direct":
            per_thread = max(VECTOR_BYTES // types.source.itemsize, per_thread)
        elif self.kernel == "pipeline":
            per_thread *= 2  # PIPELINE_TILES of tile.cuh
        return -(-pixels // (self.threads * per_thread))


# Threads by the fraction of a copy's speed from 255 MiB on (H200).
DEFAULTS = {
    variant.kernel: variant
    for variant in (
        Variant("scalar", 128),
        Variant("direct", 256),
        Variant("shared", 64),
        Variant("warp", 32),
        Variant("pipeline", 32),
        Variant("bulk", 64),
    )
}
SCALAR = DEFAULTS["scalar"]
# Compute capability that a kernel needs.
LEAST = {"pipeline": (8, 0), "bulk": (9, 0)}


def options_of(variants: Iterable[Variant], types: Types) -> tuple[str, ...]:
    """Return the options of one compilation with all the kernels of `variants`."""
    return (*types.options, *dict.fromkeys(o for v in variants for o in v.options))


def suits(variant: Variant, types: Types, rows: Rows, target: int) -> bool:
    """Return whether the kernel has a form for the types, and boundaries in every row of y."""
    if variant.kernel == "scalar":
        return True
    unit = even_part(types.channels_out)
    offsets = (target // types.target.itemsize, rows.y_pitch, rows.y_image)
    return types.vectors_possible and not any(offset % unit for offset in offsets)


@cache
def tile_of(types: Types) -> Variant:
    """Return the kernel of cuda_vector: a tile a warp, through registers.

    A thread loads a vector at least, where two vectors of outputs need no more: 12 bytes each, as
    for bytes to fp32, leave too little in flight. A block has one warp, as long as that reads
    enough for the 32 blocks of an SM to keep the memory busy, else two where a tile allows it.
    """
    in_thread, out_thread = (types.vector_pixels * p for p in (types.in_pixel, types.out_pixel))
    double = in_thread < VECTOR_BYTES and 2 * 32 * out_thread <= TILE_BYTES
    vectors = 2 if double else 1
    alone = 32 * vectors * in_thread >= WARP_BYTES
    small = 64 * vectors * max(in_thread, out_thread) <= TILE_BYTES
    return Variant("warp", 64 if small and not alone else 32, vectors)


def vector_variants(types: Types) -> tuple[Variant, ...]:
    """Return all that cuda_vector may launch for `types`."""
    return (tile_of(types), SCALAR) if types.vectors_possible else (SCALAR,)


def best(types: Types, rows: Rows) -> Variant:
    """Return the variant of cuda_vector: a tile a warp, at every size that has a whole one."""
    tile = tile_of(types)
    # Without a whole tile every pixel would take the edge's path.
    return SCALAR if rows.pixels < 32 * tile.vectors * types.vector_pixels else tile
