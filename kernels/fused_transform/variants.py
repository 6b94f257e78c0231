"""Which CUDA kernel, at which size: the variants, what they need, and the choice of cuda_vector."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from kernels.fused_transform.layout import Rows

NAMES = {torch.float32: "float", torch.float16: "__half", torch.uint8: "Byte"}
MAX_CHANNELS = 8  # beyond, a thread's pixels no longer fit its registers: a thread a pixel instead
# Rows that hold no whole tile of a warp: all of their pixels would take the edge's path.
NARROW_BYTES = 32 * 3 * 16


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
    def layout(self) -> str:
        """Parameters of every kernel as `struct` characters: x, y, Layout, Affine."""
        coefficients = (self.channels_in + 1) * self.channels_out
        return f"PPqqqqqII{coefficients}f"

    @property
    def vectors_possible(self) -> bool:
        """Whether kernels by vectors exist for so many channels."""
        return max(self.channels_in, self.channels_out) <= MAX_CHANNELS


@dataclass(frozen=True)
class Variant:
    """One way to launch a kernel of cuda.cu: `vectors` of outputs a thread, `tiles` a warp in turn."""

    kernel: str
    threads: int
    vectors: int = 1
    tiles: int = 1
    extra: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options that make this kernel exist."""
        tiles = (f"-DASYNC_TILES={self.tiles}",) if self.kernel == "async" else ()
        threads = f"-D{self.kernel.upper()}_THREADS={self.threads}"
        return (threads, *tiles, f"-DVECTORS={self.vectors}", *self.extra)

    @property
    def by_elements(self) -> bool:
        """Whether the kernel takes any alignment of y, not only those that whole pixels can reach."""
        return self.kernel in {"scalar", "neighbours"}

    @property
    def has_shifted(self) -> bool:
        """Whether inputs off their vectors are another kernel's, named ..._shifted."""
        return self.kernel not in {"scalar", "direct"}

    def blocks(self, types: Types, pixels: int) -> int:
        """Return the blocks of a row of `pixels`."""
        per_vector = 16 // types.target.itemsize
        if self.kernel == "neighbours":
            per_block = self.threads * self.vectors * per_vector
            return -(-pixels * types.channels_out // per_block)
        if self.kernel == "scalar":
            per_thread = 1
        elif self.kernel == "direct":
            per_thread = max(16 // types.source.itemsize, self.vectors * per_vector)
        else:
            per_thread = self.vectors * per_vector * self.tiles
        return -(-pixels // (self.threads * per_thread))


DEFAULTS = {
    variant.kernel: variant
    for variant in (
        Variant("scalar", 128),
        Variant("direct", 256),
        Variant("shared", 256),
        Variant("warp", 64),
        Variant("neighbours", 96),
        Variant("async", 64, tiles=2),
        Variant("bulk", 128),
    )
}
SCALAR = DEFAULTS["scalar"]
# Compute capability that a kernel needs.
LEAST = {"async": (8, 0), "bulk": (9, 0)}


def host_options(variant: Variant, types: Types) -> tuple[str, ...]:
    """Return the options of a CPU build: the default variants together, so that one build serves all."""
    together = [variant]
    if variant in DEFAULTS.values() and types.vectors_possible:
        together = [v for v in DEFAULTS.values() if v.vectors == variant.vectors]
    # The stages are thread-local there, too large for the storage that the faster model has.
    options = [option for v in together for option in v.options]
    return (*types.options, *dict.fromkeys(options), "-ftls-model=global-dynamic")


# The warp's tile is read before it is written, so it may lie in place; neighbours read across blocks.
VECTOR_VARIANTS = (DEFAULTS["warp"], SCALAR)


def best(types: Types, rows: Rows, in_place: bool) -> Variant:
    """Return the variant of cuda_vector for rows of pixels."""
    del in_place
    if rows.pixels * types.channels_out * types.target.itemsize < NARROW_BYTES:
        return SCALAR
    return DEFAULTS["warp"]
