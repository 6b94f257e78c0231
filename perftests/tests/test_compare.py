"""The comparer is tested with planted faults before anything relies on it."""

from __future__ import annotations

import pytest
import torch

from perftests.harness import compare as comparing
from perftests.harness.compare import compare

NAN, INF = float("nan"), float("inf")


def test_equal_values_agree() -> None:
    outcome = compare(torch.tensor([1.0, -2.5, 0.0]), torch.tensor([1.0, -2.5, 0.0]).double(), 0.0)
    assert outcome.passed
    assert outcome.worst_error == 0.0
    assert outcome.worst_ratio is None


@pytest.mark.parametrize("position", [0, 1, 511, 1023])
@pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e-3, -1.0])
def test_one_bad_element_anywhere_is_found(position: int, bad: float) -> None:
    actual = torch.ones(1024)
    expected = torch.ones(1024, dtype=torch.float64)
    actual[position] = bad
    outcome = compare(actual, expected, 1e-6)
    assert outcome.wrong == 1
    assert f"first at {position}:" in outcome.detail


def test_nan_equals_only_nan() -> None:
    expected = torch.tensor([NAN, NAN, 1.0], dtype=torch.float64)
    assert compare(torch.tensor([NAN, NAN, 1.0]), expected, 0.0).passed
    assert compare(torch.tensor([NAN, 0.0, 1.0]), expected, 1e9).wrong == 1
    assert compare(torch.tensor([NAN, NAN, NAN]), expected, 1e9).wrong == 1


def test_infinities_keep_their_sign_under_any_bound() -> None:
    expected = torch.tensor([INF, -INF], dtype=torch.float64)
    assert compare(torch.tensor([INF, -INF]), expected, 1.0).passed
    assert compare(torch.tensor([INF, INF]), expected, INF).wrong == 1


def test_a_reference_beyond_the_range_is_infinity() -> None:
    expected = torch.tensor([65520.0], dtype=torch.float64)
    assert compare(torch.tensor([INF], dtype=torch.float16), expected, 0.0).passed
    assert compare(torch.tensor([65504.0], dtype=torch.float16), expected, 0.0).wrong == 1


def test_the_sign_of_zero_counts_only_where_asked() -> None:
    minus, plus = torch.tensor([-0.0]), torch.tensor([0.0], dtype=torch.float64)
    assert compare(minus, plus, 0.0).passed
    assert compare(minus, plus, 0.0, zero_sign=True).wrong == 1
    assert compare(minus, -plus, 0.0, zero_sign=True).passed


def test_exact_means_the_rounded_reference() -> None:
    third = torch.tensor([1 / 3], dtype=torch.float64)
    assert compare(third.float(), third, 0.0).passed
    above = torch.nextafter(third.float(), torch.tensor(1.0))
    assert compare(above, third, 0.0).wrong == 1
    assert compare(third.float(), third, 0.0, zero_sign=True).worst_error == 0.0
    assert compare(third.float(), third, 1e-6).worst_error > 0.0


def test_errors_and_ratio_are_those_of_the_worst_element() -> None:
    actual = torch.tensor([1.0, 2.25, 3.0], dtype=torch.float64)
    expected = torch.tensor([1.0, 2.0, 3.125], dtype=torch.float64)
    outcome = compare(actual, expected, torch.tensor([0.25, 0.5, 0.125], dtype=torch.float64))
    assert outcome.passed
    assert outcome.worst_error == 0.25
    assert outcome.bound == 0.5
    assert outcome.worst_ratio == 1.0


def test_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\), the output \(3,\)"):
        compare(torch.ones(3), torch.ones(2), 0.0)


def test_nothing_agrees_with_nothing() -> None:
    assert compare(torch.ones(0), torch.ones(0), 0.0).passed


@pytest.mark.parametrize("position", [0, 3, 4, 7, 8])
@pytest.mark.parametrize("bound", [0.0, 1e-6, "each"])
def test_a_bad_element_is_found_in_every_stretch(
    position: int, bound: float | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large output is compared in stretches; here they have four elements."""
    monkeypatch.setattr(comparing, "_CHUNK", 4)
    actual, expected = torch.ones(9), torch.ones(9, dtype=torch.float64)
    limit = torch.full((9,), 1e-6, dtype=torch.float64) if bound == "each" else bound
    assert isinstance(limit, float | torch.Tensor)
    assert compare(actual, expected, limit).passed
    actual[position] = 1.5
    outcome = compare(actual, expected, limit)
    assert (outcome.wrong, outcome.count, outcome.worst_error) == (1, 9, 0.5)
    assert f"1 of 9 elements wrong, first at {position}: 1.5, not 1.0" in outcome.detail


def test_the_sign_of_a_zero_of_eight_bits_is_told_too() -> None:
    zeros = torch.zeros(4).to(torch.float8_e4m3fn)
    signed = (-torch.zeros(4)).to(torch.float8_e4m3fn)
    assert compare(zeros, torch.zeros(4, dtype=torch.float64), 0.0, zero_sign=True).passed
    assert compare(signed, torch.zeros(4, dtype=torch.float64), 0.0, zero_sign=True).wrong == 4


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("bound", [0.0, 1e-6, torch.full((3,), 1e-6, dtype=torch.float64)])
@pytest.mark.parametrize("part", [0, 1], ids=["real", "imaginary"])
@pytest.mark.parametrize("bad", [1e-3, NAN])
def test_both_parts_of_a_complex_number_are_compared(
    bad: float, part: int, bound: float | torch.Tensor, dtype: torch.dtype
) -> None:
    expected = torch.tensor([1 - 1j, 0.5j, 2.0], dtype=torch.complex128)
    actual = expected.clone().to(dtype)
    assert compare(actual, expected, bound).passed
    assert compare(actual, expected.conj().resolve_conj().conj(), bound).passed
    torch.view_as_real(actual)[1, part] = bad
    outcome = compare(actual, expected, bound)
    assert (outcome.wrong, outcome.count) == (1, 6)
    assert f"first at {2 + part}:" in outcome.detail


@pytest.mark.parametrize("poison", [0xFF, 0x5A])
def test_a_bool_that_nobody_wrote_is_not_true(poison: int) -> None:
    written = torch.tensor([True, False, True])
    expected = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    assert compare(written, expected, 0.0).passed
    assert compare(written, expected, 0.5).passed
    written.view(torch.uint8)[2] = poison
    assert compare(written, expected, 0.0).wrong == 1
    assert compare(written, expected, 0.5).wrong == 1
