"""Special values among inputs: which, where, and where none."""

from __future__ import annotations

import pytest
import torch

from perftests.harness.specials import plant

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("seed", [0, 1, 20_261_129])
@pytest.mark.parametrize("count", [64, 1000, 4099])
def test_every_kind_stands_among_the_values(dtype: torch.dtype, seed: int, count: int) -> None:
    plain = torch.full((count,), 3.0, dtype=dtype)
    (found,) = plant((plain,), seed)
    tiny = torch.finfo(dtype).smallest_normal
    kinds = {
        "nan": found.isnan(),
        "inf": found == torch.inf,
        "-inf": found == -torch.inf,
        "0": (found == 0) & ~found.signbit(),
        "-0": (found == 0) & found.signbit(),
        "subnormal": (found != 0) & (found.abs() < tiny),
    }
    missing = [name for name, where in kinds.items() if not where.any()]
    assert missing == []
    assert int((found == 3.0).sum()) >= count - 7
    assert torch.equal(plain, torch.full((count,), 3.0, dtype=dtype)), "the caller's stay as given"


@pytest.mark.parametrize("seed", [0, 1, 2, 20_261_129])
def test_a_nan_stands_within_three_elements_of_each_end(seed: int) -> None:
    """Heads and tails are other code than the body."""
    (found,) = plant((torch.ones(1000),), seed)
    assert found[:3].isnan().any()
    assert found[-3:].isnan().any()


def test_a_special_value_usually_meets_an_ordinary_one() -> None:
    left, right = plant((torch.ones(1000), torch.ones(1000)), 5)
    both = (left != 1.0) & (right != 1.0) & ~(minus_zero(left) & minus_zero(right))
    assert int(both.sum()) <= 2


def minus_zero(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor == 0) & tensor.signbit()


@pytest.mark.parametrize("seed", [0, 1, 5, 20_261_129])
def test_minus_zero_meets_minus_zero_in_head_body_and_tail_of_like_inputs(seed: int) -> None:
    """Else none would see that their sum loses its sign: that of 0 and any other has none."""
    left, other, right = plant((torch.ones(1000), torch.ones(64), torch.ones(1000)), seed)
    both = (minus_zero(left) & minus_zero(right)).nonzero().flatten().tolist()
    assert min(both) < 4
    assert max(both) >= 996
    assert any(400 < place < 600 for place in both)
    assert int(minus_zero(other).sum()) == 1  # it meets none of its size
    for found in (left, right):
        assert int(found.isnan().sum()) == 2
        assert int(found.isinf().sum()) == 2


@pytest.mark.parametrize("value", [torch.ones(7), torch.ones(100, dtype=torch.int32)])
def test_few_elements_and_integers_pass_unchanged(value: torch.Tensor) -> None:
    assert plant((value,), 1)[0] is value
