"""What stands beside a time, against figures worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from tracker.model import Case, Peaks, Result, Warn
from tracker.tests.factory import make_result, summarise
from tracker.yardsticks import fits_sum, floor_beside, is_small, launch_bound, sum_fraction


def result(time_s: float, peaks: Peaks, **more: Any) -> Result:
    return replace(make_result(), summary=summarise([time_s]), peaks=peaks, **more)


@pytest.mark.parametrize(
    ("time_s", "floor_s", "beside"),
    [
        (4.58e-6, 2.88e-6, 2.88e-6),  # ReLU of 1 MiB on an H200: most of it is the launch
        (28.7e-6, 2.88e-6, 2.88e-6),
        (28.9e-6, 2.88e-6, None),
        (4.58e-6, None, None),
    ],
)
def test_the_floor_stands_beside_times_below_ten_of_it(
    time_s: float, floor_s: float | None, beside: float | None
) -> None:
    assert floor_beside(result(time_s, Peaks(floor_s=floor_s))) == beside


def test_what_has_no_time_has_no_floor_beside_it() -> None:
    assert floor_beside(replace(make_result(), summary=None)) is None


@pytest.mark.parametrize(
    ("codes", "bound"),
    [((), False), (("clock", "noisy"), False), (("clock", "near_floor"), True)],
)
def test_launch_bound_is_what_the_record_warned_of(codes: tuple[str, ...], bound: bool) -> None:
    # The time and the floor are the same: they decide nothing here.
    found = result(2.9e-6, Peaks(floor_s=2.88e-6), warnings=tuple(Warn(c, "told") for c in codes))
    assert launch_bound(found) is bound


def test_a_time_that_is_not_known_is_not_small() -> None:
    assert is_small(28.7e-6, 2.88e-6)
    assert not is_small(28.9e-6, 2.88e-6)
    assert not is_small(float("nan"), 2.88e-6)
    assert not is_small(2.9e-6, float("nan"))


def test_the_share_of_a_sum_is_of_the_rate_measured_beside_it() -> None:
    # 3 MB in 1 us are 3 TB/s.
    found = result(1e-6, Peaks(copy_bytes_per_s=2.5e12, two_read_bytes_per_s=4e12))
    assert sum_fraction(replace(found, bytes_moved=3_000_000)) == pytest.approx(0.75)
    assert sum_fraction(result(1e-6, Peaks(copy_bytes_per_s=2.5e12))) is None
    assert sum_fraction(replace(found, bytes_moved=None)) is None
    tiny = Peaks(two_read_bytes_per_s=5e-324)
    assert sum_fraction(replace(found, bytes_moved=3_000_000, peaks=tiny)) is None


@pytest.mark.parametrize(
    ("dtype", "shape", "bytes_moved", "fits"),
    [
        ("float32", (1 << 20,), 12 << 20, True),  # a + b
        ("float32", (1 << 20,), 8 << 20, False),  # relu
        ("bfloat16", (8, 64), 3 * 2 * 512, True),
        ("float16", (41, 64, 56, 56), 49_373_696, True),  # two images and 64 scales and shifts
        ("float32", (1 << 20,), 6 << 20, False),  # to half
        ("uint8", (1 << 20,), 5 << 20, False),  # to float
        ("float8_e4m3fn", (1 << 20,), 3 << 20, True),
        ("odd", (1 << 20,), 12 << 20, False),
        ("float" + "9" * 5000, (1 << 20,), 12 << 20, False),
        ("float32", (1 << 20,), None, False),
        ("float32", (0,), 0, False),
    ],
)
def test_a_sum_fits_what_moves_three_arrays(
    dtype: str, shape: tuple[int, ...], bytes_moved: int | None, fits: bool
) -> None:
    case = Case("k", "torch", dtype, shape)
    assert fits_sum(replace(make_result(), case=case, bytes_moved=bytes_moved)) is fits
