"""Rows, boundaries and the choice of a variant: integers against plain counting."""

import pytest
import torch

from kernels.fused_transform import layout
from kernels.fused_transform.layout import Rows, pixels_to_boundary, rows_of
from kernels.fused_transform.variants import (
    SCALAR,
    Types,
    Variant,
    best,
    tile_of,
    vector_variants,
)

F32, F16, U8 = torch.float32, torch.float16, torch.uint8
RGB = Types(F32, F32, 3, 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 6, 7, 8])
@pytest.mark.parametrize("itemsize", [2, 4])
def test_pixels_to_a_boundary_are_those_that_counting_finds(itemsize: int, channels: int) -> None:
    for address in range(4096, 4096 + 128, itemsize):
        steps = (h for h in range(128) if (address + h * channels * itemsize) % 128 == 0)
        assert pixels_to_boundary(address, itemsize, channels) == next(steps, None)


def test_inputs_are_shifted_where_they_are_off_their_vectors_at_the_boundary() -> None:
    assert layout.shifted(4096, 8192, 12, 4, 3) is False
    assert layout.shifted(4096 + 4, 8192 + 4, 12, 4, 3) is False
    assert layout.shifted(4096 + 4, 8192, 12, 4, 3) is True
    assert layout.shifted(4096, 8192 + 4, 16, 4, 2) is None


def test_rows_of_a_cropped_batch() -> None:
    x, y = torch.empty(5, 7, 11, 3)[:, 1:5, 2:9], torch.empty(5, 4, 7, 2)
    found = rows_of(x.shape, x.stride(), y.stride(), (3, 2))
    assert found == Rows(7, 4, 5, 33, 14, 231, 56)
    assert rows_of((5, 4, 7, 3), (84, 21, 3, 1), (56, 14, 2, 1), (3, 2)) == Rows(140)
    assert rows_of((5, 7, 3), (1, 15, 5), (21, 3, 1), (3, 3)) is None


def chosen(pixels: int, types: Types = RGB) -> Variant:
    return best(types, Rows(pixels))


@pytest.mark.parametrize("pixels", [87040, 21 * 512 * 512, 1024 * 512 * 512])
def test_every_size_takes_a_tile_a_warp(pixels: int) -> None:
    assert chosen(pixels) == Variant("warp", 32)
    assert chosen(pixels, Types(U8, F32, 3, 3)) == Variant("warp", 32, 2)
    assert chosen(pixels, Types(U8, F16, 3, 3)) == Variant("warp", 64)


def test_rows_without_a_whole_tile_take_the_scalar_kernel() -> None:
    assert chosen(127) == SCALAR
    assert chosen(128) == Variant("warp", 32)
    assert chosen(128, types=Types(F16, F16, 3, 3)) == SCALAR


def test_what_is_chosen_is_compiled_and_no_tile_is_beyond_its_limit() -> None:
    for source, target in ((F32, F32), (F16, F16), (U8, F32), (U8, F16)):
        for channels in ((3, 3), (3, 1), (4, 3), (8, 8), (1, 1)):
            types = Types(source, target, *channels)
            for pixels in (1, 1000, 1 << 28):
                assert chosen(pixels, types=types) in vector_variants(types)
            tile = tile_of(types)
            pixels = tile.threads * tile.vectors * types.vector_pixels
            assert pixels * max(types.in_pixel, types.out_pixel) <= 4096
