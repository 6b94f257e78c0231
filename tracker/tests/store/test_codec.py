"""Measurements come back bit for bit, in few bytes where the timer counts in steps."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.errors import StoreError
from tracker.store.codec import pack, pack_readings, unpack, unpack_all, unpack_readings

POSITIVE = st.floats(min_value=5e-324, max_value=1.7e308)


def event_times(
    rng: np.random.Generator, mean_s: float, step_s: float, count: int = 100
) -> list[float]:
    """Return times as a CUDA event pair gives them: whole steps, as float32 milliseconds."""
    ticks = np.rint(rng.normal(mean_s, mean_s * 0.01, count) / step_s)
    milliseconds = (ticks * (step_s * 1e3)).astype(np.float32).astype(np.float64)
    return [float(t) for t in milliseconds / 1e3]


def same_bits(one: object, other: object) -> bool:
    return np.array(one, np.float64).tobytes() == np.array(other, np.float64).tobytes()


@given(st.lists(POSITIVE, max_size=40))
def test_any_positive_floats_survive(sample: list[float]) -> None:
    assert same_bits(unpack(pack(sample)), sample)


@given(
    st.lists(st.integers(1, 2**40), min_size=1, max_size=40), st.sampled_from([1e3, 1e6, 1e9, 1e12])
)
def test_whole_ticks_survive(ticks: list[int], per_second: float) -> None:
    sample = [tick / per_second for tick in ticks]
    assert same_bits(unpack(pack(sample)), sample)


@given(
    st.lists(st.floats(min_value=2**-20, max_value=2**23, width=32), min_size=1, max_size=40),
    st.booleans(),
)
@settings(max_examples=50)
def test_event_milliseconds_survive_either_conversion(sample_ms: list[float], divide: bool) -> None:
    sample = [t / 1e3 if divide else t * 1e-3 for t in sample_ms]
    assert same_bits(unpack(pack(sample)), sample)


@pytest.mark.parametrize("step_s", [32e-9, 1e-9, 5e-7, 1.024e-6])
@pytest.mark.parametrize("mean_s", [2e-5, 1e-3, 5e-2])
def test_a_hundred_event_times_take_few_bytes(mean_s: float, step_s: float) -> None:
    sample = event_times(np.random.default_rng(1), mean_s, step_s)
    # Beyond 16 ms float32 no longer counts whole nanoseconds, so that steps are lost on it.
    assert len(pack(sample)) <= (240 if mean_s < 0.016 else 300)
    assert same_bits(unpack(pack(sample)), sample)


def test_an_outlier_costs_bytes_of_its_own_only() -> None:
    sample = event_times(np.random.default_rng(1), 1e-3, 32e-9)
    plain = len(pack(sample))
    sample[17] = event_times(np.random.default_rng(2), 1.2e-2, 32e-9, 1)[0]
    assert len(pack(sample)) <= plain + 120
    assert same_bits(unpack(pack(sample)), sample)


def test_an_empty_sample_is_no_bytes() -> None:
    assert pack([]) == b""
    assert unpack(b"").size == 0


def test_many_samples_unpack_as_each_alone() -> None:
    rng = np.random.default_rng(4)
    samples = [
        event_times(rng, mean_s, step_s, count)
        for mean_s, step_s, count in [(2e-5, 32e-9, 100), (1e-3, 32e-9, 100), (1e-3, 1e-9, 7)] * 20
    ]
    # Values that need exceptions, no regular step, one value alone, none at all.
    samples += [[1e-4] * 99 + [5.0], [3e-5] * 50 + [7e-2] * 2 + [3e-5] * 48]
    samples += [rng.exponential(1e-4, 100).tolist(), [1e-4], []]
    packed = [pack(samples[number]) for number in rng.permutation(len(samples))]
    found = unpack_all(packed)
    assert [same_bits(row, unpack(data)) for row, data in zip(found, packed, strict=True)] == [
        True
    ] * len(samples)
    in_order = unpack_all([pack(sample) for sample in samples])
    assert all(same_bits(row, sample) for row, sample in zip(in_order, samples, strict=True))


def test_more_measurements_than_are_unpacked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.store.codec._AT_ONCE", 250)
    samples = [event_times(np.random.default_rng(seed), 1e-3, 32e-9) for seed in range(9)]
    found = unpack_all([pack(sample) for sample in samples])
    assert all(same_bits(row, sample) for row, sample in zip(found, samples, strict=True))


def test_one_damaged_sample_among_others_is_told() -> None:
    good = pack(event_times(np.random.default_rng(1), 1e-3, 32e-9))
    listed = bytearray(pack([1e-4] * 99 + [5.0]))
    listed[-12:-8] = (10_000).to_bytes(4, "little")
    for broken in (good[:-1], b"\x09" + good[1:], bytes(listed)):
        with pytest.raises(StoreError, match="damaged"):
            unpack_all([good, good, broken])


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        pack([float("nan")])


def test_damaged_bytes_are_an_error_or_other_numbers_and_never_a_crash() -> None:
    whole = pack(event_times(np.random.default_rng(1), 1e-3, 32e-9))
    for length in range(1, len(whole)):
        with pytest.raises(StoreError, match="damaged"):
            unpack(whole[:length])
    rng = np.random.default_rng(2)
    for _ in range(300):
        broken = bytearray(whole)
        broken[rng.integers(24)] ^= 1 << rng.integers(8)
        with contextlib.suppress(StoreError):
            unpack(bytes(broken))


def test_readings_survive_and_damage_is_told() -> None:
    readings = {
        "before": {"power_w": 121.5},
        "energy": {"joules": None},
        "warnings": [{"code": "é", "message": "x"}],
    }
    packed = pack_readings(readings)
    assert unpack_readings(packed) == readings
    for broken in (b"", b"\x09", packed[:-3], bytes([packed[0]]) + b"\xff" * 9):
        with pytest.raises(StoreError, match="damaged"):
            unpack_readings(broken)
