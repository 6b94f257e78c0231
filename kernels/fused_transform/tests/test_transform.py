"""Transforms: what is refused, how they fold, and the text that stands for them."""

import math

import numpy as np
import pytest
import torch

from kernels.fused_transform import PRESETS, Transform
from kernels.fused_transform.reference import reference
from kernels.fused_transform.transform import parse

COLOURS = PRESETS["imagenet_ycbcr"]
ONES, MATRIX = (1.0, 1.0, 1.0), ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))


@pytest.mark.parametrize(
    ("mean", "std", "matrix", "message"),
    [
        (ONES, (1.0, 0.0, 1.0), MATRIX, "std is .*expected no 0"),
        (ONES, ONES[:2], MATRIX, "3 means, 2 stds"),
        (ONES, ONES, MATRIX[:2], r"rows of \[2, 2\]"),
        (ONES, ONES, (*MATRIX[:2], (1.0,)), r"rows of \[2, 2, 1\]"),
        (ONES, ONES, ((), (), ()), r"rows of \[0, 0, 0\]"),
        ((math.nan, 0.0, 0.0), ONES, MATRIX, "mean is .*expected finite numbers"),
        (ONES, ONES, ((math.inf, 0.0), *MATRIX[1:]), "matrix is .*expected finite numbers"),
        (ONES, (1e-300, 1.0, 1.0), MATRIX, "beyond fp32"),
        ([0.0] * 40, [1.0] * 40, [[1.0] * 40] * 40, "at most 1000 fit a launch"),
    ],
)
def test_what_is_no_transform_is_refused(
    mean: list[float], std: list[float], matrix: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Transform.of(mean, std, matrix)


def test_folding_is_the_two_steps() -> None:
    x = np.random.default_rng(5).random((100, 3))
    mean, std, matrix = COLOURS.arrays()
    weight, bias = np.split(np.array(COLOURS.coefficients), [9])
    assert not np.allclose(weight.reshape(3, 3), weight.reshape(3, 3).T)
    assert x @ weight.reshape(3, 3) + bias == pytest.approx(((x - mean) / std) @ matrix, abs=1e-6)


def test_the_reference_is_the_matrix_product_of_the_normalised_pixels() -> None:
    x = torch.rand(50, 3, dtype=torch.float64)
    mean, std, matrix = map(torch.from_numpy, COLOURS.arrays())
    assert torch.allclose(reference(x), ((x - mean) / std) @ matrix, rtol=0, atol=1e-14)
    assert not torch.allclose(reference(x), ((x - mean) / std) @ matrix.T, rtol=0, atol=1e-2)


def test_a_tiny_std_is_a_number_and_an_integer_one_is_one() -> None:
    tiny = Transform.of([0.0], [1e-30], [[1.0, -2.0]])
    assert tiny.coefficients == pytest.approx((1e30, -2e30, 0.0, 0.0))
    ones = Transform.of([0, 0], [1, 1], np.array([[2, 1], [0, 3]]))
    assert ones.std == (1.0, 1.0)
    pixel = torch.tensor([[3, 4]], dtype=torch.uint8)
    assert reference(pixel, transform=ones).tolist() == [[6.0, 15.0]]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_text_and_hash_stand_for_a_transform(name: str) -> None:
    transform = PRESETS[name]
    again = parse(str(transform))
    assert again == transform
    assert hash(again) == hash(transform)
    assert parse(name) is transform
    columns = tuple(zip(*transform.matrix, strict=True))
    assert transform.matrix != columns, "a matrix in a test is never symmetric"
