"""How images lie in memory: rows of whole pixels at a pitch, and where their vectors begin.

Pure integers, no torch, but for `rows_of`, which reads a tensor's shape and strides.
"""

from collections.abc import Sequence
from typing import NamedTuple

VECTOR_BYTES = 16
BOUNDARY_BYTES = 128  # BOUNDARY of pixels.cuh


class Rows(NamedTuple):
    """Rows of `pixels`, at pitches in elements; `rows` of them make an image, `images` in all."""

    pixels: int
    rows: int = 1
    images: int = 1
    x_pitch: int = 0
    y_pitch: int = 0
    x_image: int = 0
    y_image: int = 0


class Dimension(NamedTuple):
    """A dimension of x and y but for the channels: its size and the two strides in elements."""

    size: int
    x: int
    y: int


def merged(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """Return the dimensions, outermost first, those joined that one stride covers in x and y."""
    found: list[Dimension] = []
    for dimension in dimensions:
        if dimension.size == 1:
            continue
        if found and found[-1][1:] == (dimension.x * dimension.size, dimension.y * dimension.size):
            found[-1] = dimension._replace(size=found[-1].size * dimension.size)
        else:
            found.append(dimension)
    return found


def rows_of(
    shape: Sequence[int],
    x_strides: Sequence[int],
    y_strides: Sequence[int],
    channels: tuple[int, int],
) -> Rows | None:
    """Return the rows of images [..., C] and [..., D], or None when pixels do not lie in rows.

    `shape` is that of x; `channels` are C and D. Channels lie side by side, pixels too within a
    row, and at most two further strides cover all dimensions: rows, and images of rows.
    """
    for size, stride in zip(channels, (x_strides[-1], y_strides[-1]), strict=True):
        if size > 1 and stride != 1:
            return None
    outer = merged([Dimension(*d) for d in zip(shape[:-1], x_strides, y_strides, strict=False)])
    if not outer:
        return Rows(1)
    pixels = outer.pop().size if outer[-1][1:] == channels else 1
    if len(outer) > 2:
        return None
    if not outer:
        return Rows(pixels)
    rows = outer[-1]
    images = outer[0] if len(outer) == 2 else Dimension(1, 0, 0)
    return Rows(pixels, rows.size, images.size, rows.x, rows.y, images.x, images.y)


def even_part(number: int) -> int:
    """Return the largest power of two that divides `number`."""
    return number & -number


def pixels_to_boundary(y: int, itemsize: int, channels: int) -> int | None:
    """Return the whole pixels between address `y` and its first boundary, None without one."""
    residues = BOUNDARY_BYTES // itemsize
    elements = -(y // itemsize) % residues
    even = even_part(channels)
    if elements % even:
        return None
    return elements // even * pow(channels // even, -1, residues // even) % (residues // even)


def shifted(x: int, y: int, in_pixel: int, itemsize: int, channels: int) -> bool | None:
    """Return whether x is off a vector where y reaches its boundary; None when y never does.

    `x` and `y` are addresses, `in_pixel` bytes of a pixel of x, `itemsize` and `channels` y's.
    """
    head = pixels_to_boundary(y, itemsize, channels)
    return None if head is None else (x + head * in_pixel) % VECTOR_BYTES != 0
