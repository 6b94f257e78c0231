import math

import pytest
import torch

from kernels.compare import compare
from kernels.tests.guarded import Guarded
from kernels.tolerances import EXACT, half_ulp

EXPECTED = torch.tensor([1.0, -2.0, 0.0, math.inf, -math.inf, math.nan, 1e-3], dtype=torch.float64)


def right(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return EXPECTED.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bound", [EXACT, 1e-5])
def test_the_rounded_reference_itself_passes(dtype: torch.dtype, bound: float) -> None:
    limit = bound if bound == EXACT else half_ulp(EXPECTED, dtype) + bound
    assert compare(right(dtype), EXPECTED, limit).passed


@pytest.mark.parametrize("bound", [EXACT, 1e-5, torch.full((7,), 1e-5, dtype=torch.float64)])
@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, 1.0001), (0, math.nan), (0, math.inf), (2, math.nan), (2, 1.0), (3, -math.inf),
        (3, 3e38), (4, math.inf), (5, 0.0), (5, math.inf), (6, 0.0), (6, -1e-3), (6, math.nan),
    ],
)  # fmt: skip
def test_one_wrong_element_is_seen(bound: float | torch.Tensor, index: int, value: float) -> None:
    planted = right()
    planted[index] = value
    outcome = compare(planted, EXPECTED, bound)
    assert not outcome.passed
    assert outcome.wrong == 1
    assert f"flat index {index}" in outcome.detail


def test_exact_means_the_last_bit() -> None:
    planted = right()
    planted[0] = torch.nextafter(planted[0], torch.tensor(2.0))
    assert not compare(planted, EXPECTED, EXACT).passed
    assert compare(planted, EXPECTED, 1e-5).passed


def test_minus_zero_equals_zero() -> None:
    planted = right()
    planted[2] = -0.0
    assert compare(planted, EXPECTED, EXACT).passed


@pytest.mark.parametrize("bound", [EXACT, 1e-5])
def test_the_sign_of_zero_counts_where_asked(bound: float) -> None:
    planted = right()
    assert compare(planted, planted.double(), bound, zero_sign=True).passed
    planted[2] = -0.0
    outcome = compare(planted, EXPECTED, bound, zero_sign=True)
    assert outcome.wrong == 1
    assert "flat index 2: -0.0, expected 0.0" in outcome.detail
    assert compare(planted, planted.double(), bound, zero_sign=True).passed


def test_one_bad_element_in_a_million_is_seen() -> None:
    expected = torch.zeros(1_000_000, dtype=torch.float64)
    planted = expected.float()
    planted[-1] = 1e-4
    outcome = compare(planted, expected, 1e-5)
    assert (outcome.passed, outcome.wrong) == (False, 1)
    assert outcome.worst_error == pytest.approx(1e-4)


def test_another_shape_is_wrong_even_if_it_broadcasts() -> None:
    assert not compare(torch.zeros(1), torch.zeros(5, dtype=torch.float64), EXACT).passed


@pytest.mark.parametrize("bound", [math.nan, -1.0])
def test_a_senseless_bound_allows_nothing(bound: float) -> None:
    assert not compare(torch.ones(3), torch.ones(3, dtype=torch.float64), bound).passed


@pytest.mark.parametrize("value", [1.0, 3e38, math.nan, -math.inf])
def test_no_bound_covers_a_missing_infinity(value: float) -> None:
    expected = torch.tensor([math.inf], dtype=torch.float64)
    for bound in (math.inf, 1e308, expected):
        assert not compare(torch.tensor([value]), expected, bound).passed
        assert compare(torch.tensor([math.inf]), expected, bound).passed


def test_overflow_within_the_bound_may_be_infinite() -> None:
    expected = torch.tensor([65519.0, 65530.0], dtype=torch.float64)
    assert compare(torch.tensor([math.inf] * 2).half(), expected, 32.0).passed
    assert not compare(torch.tensor([-math.inf] * 2).half(), expected, 32.0).passed
    assert compare(torch.tensor([65504.0] * 1).half(), expected[:1], 32.0).passed


def test_the_worst_ratio_is_the_error_over_its_own_bound() -> None:
    expected = torch.tensor([1.0, 100.0], dtype=torch.float64)
    actual = torch.tensor([1.5, 101.0])
    outcome = compare(actual, expected, torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert outcome.passed
    assert outcome.worst_ratio == pytest.approx(0.5)
    assert outcome.worst_error == pytest.approx(1.0)


def test_half_ulp_is_that_of_the_binade() -> None:
    values = torch.tensor([1.0, 1.5, 2.0, 0.0, 1e-9, 65504.0], dtype=torch.float64)
    found = half_ulp(values, torch.float16).tolist()
    assert found == [2**-11, 2**-11, 2**-10, 2**-25, 2**-25, 16.0]


@pytest.mark.parametrize("offset", [-1, 0, 4098, 4099])
def test_a_write_outside_is_seen(offset: int) -> None:
    guarded = Guarded((4099,), torch.float16, torch.device("cpu"), 3)
    whole = guarded._whole
    whole[256 + offset] = 1.0
    assert guarded.intact() is (0 <= offset < 4099)


def test_an_element_that_nothing_wrote_is_seen() -> None:
    guarded = Guarded((67,), torch.float32, torch.device("cpu"))
    guarded.tensor[:66] = 0.0
    assert not compare(guarded.tensor, torch.zeros(67, dtype=torch.float64), EXACT).passed


def test_a_nan_that_nothing_wrote_is_seen() -> None:
    expected = torch.tensor([1.0, math.nan, 2.0], dtype=torch.float64)
    guarded = Guarded((3,), torch.float32, torch.device("cpu"))
    guarded.poison(expected)
    guarded.tensor[0], guarded.tensor[2] = 1.0, 2.0
    assert not compare(guarded.tensor, expected, EXACT).passed
