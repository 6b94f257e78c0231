"""The roofline against figures worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.model import Peaks
from tracker.roofline import Roof, bound_by, place, roofs

A100 = Roof(2039e9, 19.5e12)


def test_the_ridge_of_an_a100_is_as_published() -> None:
    assert A100.ridge == pytest.approx(9.56, abs=0.01)


def test_without_a_flop_rate_there_is_no_ridge_and_memory_limits_whatever_the_intensity() -> None:
    roof = Roof(2039e9)
    assert roof.ridge is None
    assert roof.attainable(1000.0) == 2039e12
    point = place(seconds=1.0, bytes_moved=10**12, flop=10**15, roof=roof)
    assert point.memory_bound
    assert point.fraction == pytest.approx(1 / 2.039)


def test_the_roofs_of_a_result_are_those_that_it_knows() -> None:
    both = roofs(Peaks(4.8e12, 4.1e12, "driver", 4.2e12, 67e12, 3e-6), copy="a copy")
    assert [(roof.name, roof.source) for roof in both] == [
        ("theoretical peak", "memory clock and bus width"),
        ("a copy", "driver"),
    ]
    assert [roof.ridge for roof in both] == pytest.approx([67 / 4.8, 67 / 4.1])
    (alone,) = roofs(Peaks(copy_bytes_per_s=4.1e12), copy="a copy")
    assert (alone.bytes_per_s, alone.flop_per_s) == (4.1e12, None)
    assert roofs(Peaks(), copy="a copy") == ()


def test_a_vector_add_is_memory_bound_at_one_twelfth_flop_a_byte() -> None:
    n = 1 << 20
    point = place(seconds=12 * n / 1.5e12, bytes_moved=12 * n, flop=n, roof=A100)
    assert point.intensity == pytest.approx(1 / 12)
    assert point.memory_bound
    assert point.attainable_flop_per_s == pytest.approx(2039e9 / 12)
    assert point.fraction == pytest.approx(1.5 / 2.039)


def test_beyond_the_ridge_arithmetic_is_the_limit() -> None:
    point = place(seconds=1.0, bytes_moved=10**9, flop=10**13, roof=A100)
    assert not point.memory_bound
    assert point.attainable_flop_per_s == A100.flop_per_s
    assert point.fraction == pytest.approx(10 / 19.5)


def test_a_copy_without_arithmetic_is_placed_by_bandwidth() -> None:
    assert place(seconds=1.0, bytes_moved=10**12, flop=0, roof=A100).fraction == pytest.approx(
        1 / 2.039
    )


@given(st.floats(0, 1e4), st.floats(0, 1e4))
def test_the_roof_never_falls_and_never_exceeds_either_ceiling(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert A100.attainable(low) <= A100.attainable(high) <= 19.5e12
    assert A100.attainable(low) <= A100.bytes_per_s * low


@pytest.mark.parametrize(
    "bad",
    [
        {"seconds": 0.0, "bytes_moved": 1, "flop": 1},
        {"seconds": 1.0, "bytes_moved": 0, "flop": 1},
        {"seconds": 1.0, "bytes_moved": 1, "flop": -1},
    ],
)
def test_impossible_figures_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cannot place"):
        place(**bad, roof=A100)


def test_a_roof_without_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        Roof(0, 1)


def test_launch_bounds_whatever_the_intensity() -> None:
    low = place(seconds=1e-3, bytes_moved=10**9, flop=10**9, roof=A100)
    high = place(seconds=1e-3, bytes_moved=10**6, flop=10**9, roof=A100)
    assert [bound_by(A100, point, launch=False) for point in (low, high)] == [
        "memory",
        "arithmetic",
    ]
    assert [bound_by(A100, point, launch=True) for point in (low, high)] == ["launch", "launch"]
    memory = Roof(A100.bytes_per_s)
    assert bound_by(memory, low, launch=False) is None
    assert bound_by(memory, low, launch=True) == "launch"
