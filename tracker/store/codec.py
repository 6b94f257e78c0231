"""Measurements and readings as few bytes as keep them exact.

Event timers count in steps: CUDA gives float32 milliseconds, often of whole nanoseconds; host
clocks give whole nanoseconds. A sample is turned into such integers where that is exact for every
value, else into the bits of its floats; then the smallest is subtracted, the common divisor taken
out, and the rest packed into as many bits as most values need, with the few larger ones listed.

Layout: method u8, width u8, exceptions u16, count u32, smallest i64, divisor i64, packed bits,
then for each exception its index u32 and value u64. Little-endian.
"""

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import StoreError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_HEADER = struct.Struct("<BBHIqq")
_EXCEPTION = np.dtype([("index", "<u4"), ("value", "<u8")])
_EXACT_INTEGER = 2.0**53
_NOTHING: Floats = np.empty(0)
# So many measurements are unpacked at once: a bit of each takes a byte meanwhile.
_AT_ONCE = 500_000


def _whole(values: Floats) -> Integers | None:
    rounded = np.rint(values)
    return rounded.astype(np.int64) if rounded.max() < _EXACT_INTEGER else None


def _single_bits(values: Floats) -> Integers | None:
    if values.max() > np.finfo(np.float32).max:
        return None
    return values.astype(np.float32).view(np.uint32).astype(np.int64)


def _from_single_bits(n: Integers) -> Floats:
    return n.astype(np.uint32).view(np.float32).astype(np.float64)


def _ns_in_single_ms(n: Integers) -> Floats:
    return (n * 1e-6).astype(np.float32).astype(np.float64)


_Encode = Callable[[Floats], Integers | None]
_Decode = Callable[[Integers], Floats]
# The numbers are part of stored data: add methods, never change one.
_METHODS: dict[int, tuple[_Encode, _Decode]] = {
    1: (lambda v: _whole(v * 1e9), lambda n: n / 1e9),
    2: (lambda v: _whole(v * 1e9), lambda n: _ns_in_single_ms(n) / 1e3),
    3: (lambda v: _whole(v * 1e9), lambda n: _ns_in_single_ms(n) * 1e-3),
    4: (lambda v: _single_bits(v * 1e3), lambda n: _from_single_bits(n) / 1e3),
    5: (lambda v: _single_bits(v * 1e3), lambda n: _from_single_bits(n) * 1e-3),
    6: (lambda v: _whole(v * 1e12), lambda n: n / 1e12),
    7: (lambda v: v.view(np.int64), lambda n: n.view(np.float64)),
}


def pack(sample: Sequence[float]) -> bytes:
    """Return the exact measurements, in their order, as bytes."""
    values = np.array(sample, dtype=np.float64)
    if values.size == 0:
        return b""
    with np.errstate(over="ignore", invalid="ignore"):
        for method, (encode, decode) in _METHODS.items():
            integers = encode(values)
            if integers is not None and np.array_equal(decode(integers), values):
                return _pack_integers(method, integers)
    raise ValueError("measurements hold NaN; expected finite numbers")


def unpack(data: bytes) -> Floats:
    """Return the measurements that `pack` was given; StoreError for bytes it did not make."""
    return unpack_all([data])[0]


def unpack_all(several: Sequence[bytes]) -> list[Floats]:
    """Return what `unpack` does of each, those that are packed alike at once; errors as its."""
    found = [_NOTHING] * len(several)
    alike: dict[tuple[int, int, int], list[int]] = {}
    for number, data in enumerate(several):
        if data:
            alike.setdefault(_layout(data), []).append(number)
    for layout, numbers in alike.items():
        at_once = max(1, _AT_ONCE // max(1, layout[-1]))
        for begin in range(0, len(numbers), at_once):
            part = numbers[begin : begin + at_once]
            rows = _unpacked([several[number] for number in part], *layout)
            for number, row in zip(part, rows, strict=True):
                found[number] = row
    return found


def _layout(data: bytes) -> tuple[int, int, int]:
    """Return method, width and count of packed measurements, whose length is right."""
    try:
        method, width, extra, count, _, _ = _HEADER.unpack_from(data)
        expected = _HEADER.size + (count * width + 7) // 8 + extra * _EXCEPTION.itemsize
    except struct.error as error:
        raise _damaged(data, error) from error
    if len(data) != expected or method not in _METHODS or width > 64:
        raise _damaged(data, f"method {method}, width {width}, expected {expected}")
    return method, width, count


def _unpacked(several: Sequence[bytes], method: int, width: int, count: int) -> Floats:
    """Return the measurements of several of one layout, a row each."""
    end = _HEADER.size + (count * width + 7) // 8
    packed = b"".join(data[_HEADER.size : end] for data in several)
    planes = np.frombuffer(packed, np.uint8).reshape(len(several), -1)
    bits = np.unpackbits(planes, axis=1, count=count * width, bitorder="little")
    whole = np.zeros((len(several), count, 8), np.uint8)
    whole[:, :, : (width + 7) // 8] = np.packbits(
        bits.reshape(len(several), count, width), axis=2, bitorder="little"
    )
    integers = whole.view("<u8").reshape(len(several), count)
    smallest, divisor = np.empty((2, len(several)), np.int64)
    for number, data in enumerate(several):
        _, _, extra, _, smallest[number], divisor[number] = _HEADER.unpack_from(data)
        if extra:
            listed = np.frombuffer(data, _EXCEPTION, extra, end)
            try:
                integers[number, listed["index"]] = listed["value"]
            except IndexError as error:
                raise _damaged(data, error) from error
    return _METHODS[method][1](integers.astype(np.int64) * divisor[:, None] + smallest[:, None])


def _damaged(data: bytes, why: object) -> StoreError:
    return StoreError(
        f"cannot read measurements: {len(data)} bytes that are no packed sample ({why}); "
        "the store is damaged; run `bandwatch db check`"
    )


def _pack_integers(method: int, integers: Integers) -> bytes:
    smallest = int(integers.min())
    offsets = integers - smallest
    divisor = int(np.gcd.reduce(offsets)) or 1
    values = (offsets // divisor).astype(np.uint64)
    # frexp of a float64 can overstate the length of an integer beyond 53 bits by one: harmless.
    lengths = np.frexp(values.astype(np.float64))[1]
    width = _best_width(lengths)
    large = np.flatnonzero(lengths > width)
    listed = np.empty(large.size, _EXCEPTION)
    listed["index"], listed["value"] = large, values[large]
    values[large] = 0
    planes = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(planes, axis=1, bitorder="little")[:, :width]
    header = _HEADER.pack(method, width, large.size, values.size, smallest, divisor)
    return header + np.packbits(bits, bitorder="little").tobytes() + listed.tobytes()


def _best_width(lengths: NDArray[np.int32]) -> int:
    count = lengths.size
    needed = np.bincount(lengths, minlength=65)[:65]
    # larger[w]: how many values need more than w bits.
    larger = count - np.cumsum(needed)
    costs = (count * np.arange(65) + 7) // 8 + larger * _EXCEPTION.itemsize
    costs[larger > np.iinfo(np.uint16).max] = np.iinfo(np.int64).max
    return int(np.argmin(costs))


# What readings look like: the compressor refers to it instead of repeating it. Part of stored
# data: a change needs a new number in `_DICTIONARIES`.
_TYPICAL = (
    b'"host_cpu_s":"gpu_j":"dram__bytes_read.sum":"dram__bytes_write.sum":"sm__throughput":'
    b'"energy":{"joules":"joules_per_gb":"watts":"counters":{"warnings":[{"code":"clock","message":"'
    b'"throttle_reasons":["sw power cap","sw thermal slowdown","hw slowdown","gpu idle"]'
    b'"throttle_reasons":[]},"after":{"memory_clock_hz":2619000000.0,"other_processes":0,'
    b'"power_w":"sm_clock_hz":1980000000.0,"temperature_c":4'
    b',"throttle_reasons":[]},"before":{"memory_clock_hz":3201000000.0,"other_processes":0,'
    b'"power_w":121.5,"sm_clock_hz":1980000000.0,"temperature_c":35.0,"throttle_reasons":[]},'
    b'"correctness":{"worst_error":0.0,"worst_ratio":0.0},'
    b'"during":{"memory_clock_hz":3201000000.0,"other_processes":0,"power_w":'
    b'"sm_clock_hz":1980000000.0,"temperature_c":40.0,"throttle_reasons":[]},'
    b'"first_call":{"compile_s":0.0,"launch_s":0.000,"load_s":0.00},"median_cycles":'
    b'"peaks":{"floor_s":2.e-06,"two_read_bytes_per_s":4'
)
_DICTIONARIES = {1: _TYPICAL}
_CURRENT = 1


def pack_readings(readings: dict[str, Any]) -> bytes:
    """Return plain JSON data as bytes."""
    text = json.dumps(readings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    compressor = zlib.compressobj(level=9, wbits=-15, zdict=_DICTIONARIES[_CURRENT])
    return bytes([_CURRENT]) + compressor.compress(text.encode()) + compressor.flush()


def unpack_readings(data: bytes) -> dict[str, Any]:
    """Return the JSON data that `pack_readings` was given; StoreError for bytes it did not make."""
    try:
        expander = zlib.decompressobj(wbits=-15, zdict=_DICTIONARIES[data[0]])
        value: dict[str, Any] = json.loads(expander.decompress(data[1:]) + expander.flush())
    except (zlib.error, ValueError, KeyError, IndexError) as error:
        raise StoreError(
            f"cannot read a result's readings: {len(data)} bytes that are not packed ({error}); "
            "the store is damaged; run `bandwatch db check`"
        ) from error
    return value
