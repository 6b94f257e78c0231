"""Strict JSON: UTF-8, no NaN or infinity, no duplicate keys, bounded size, depth and integers."""

import json
import re
import stat
from math import isfinite
from pathlib import Path

from tracker.errors import NotFoundError, RecordError

MAX_BYTES = 32 * 1024 * 1024
_INT64 = 1 << 63
_GZIP = b"\x1f\x8b"
# Text that no database can hold: an escaped NUL, or half of a surrogate pair.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class _RefusedError(ValueError):
    """A value that JSON as we accept it cannot have."""


def check_file(path: Path, expected: str) -> None:
    """Raise unless `path` is a file that can be read to its end; a pipe may have none."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise NotFoundError(
            f"cannot read {path}: there is no such file; expected {expected}"
        ) from error
    except OSError as error:
        raise NotFoundError(f"cannot read {path}: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise NotFoundError(f"cannot read {path}: it is {kind}; expected {expected} in a file")


def read_limited(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file that is at most `limit` long; a longer one is not read."""
    try:
        found = path.stat().st_size
        if found <= limit:
            with path.open("rb") as stream:
                # One byte more than allowed: a pipe or a growing file has no size to trust.
                data = stream.read(limit + 1)
            found = len(data)
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    if found > limit:
        raise RecordError(
            f"cannot read {path}: {found:,} bytes; expected at most {limit:,}; "
            "split the run into shards that share its run id"
        )
    return data


def parse_json(data: bytes, name: str, *, nan: bool = False) -> object:
    """Return the value of strict JSON text. `name` is what an error calls the input.

    `nan` admits NaN and infinity, for formats in which they say something.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith(_GZIP):
            raise RecordError(
                f"cannot read {name}: gzip, not UTF-8; expected JSON: gunzip it first"
            ) from error
        raise RecordError(
            f"cannot read {name}: byte {error.start} is not UTF-8; expected JSON in UTF-8"
        ) from error
    if text.startswith("\ufeff"):
        raise RecordError(
            f"cannot read {name}: it begins with a byte order mark, as spreadsheets write it; "
            "expected UTF-8 without one"
        )
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=float if nan else _constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
        if _SUSPECT.search(data):
            _refuse_unstorable(value, "")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise RecordError(f"cannot read {name}: not JSON at {where}: {error.msg}") from error
    except _RefusedError as error:
        raise RecordError(f"cannot read {name}: {error}") from error
    except RecursionError as error:
        raise RecordError(f"cannot read {name}: nested too deep; expected a record") from error
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Linear: a file of a million names, the last one twice, must not keep us for hours.
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _RefusedError(f"duplicate key {shorten(twice)}; expected each key once")
    return found


def _constant(text: str) -> float:
    raise _RefusedError(f"{text} is not JSON; expected null with a reason under `reasons`")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _RefusedError(f"number {shorten(text)} is beyond a 64-bit float")
    return value


def _bounded(text: str) -> int:
    # Length first: int() of a very long text is slow, and refused by Python beyond 4,300 digits.
    value = int(text) if len(text) <= 20 else _INT64
    if not -_INT64 <= value < _INT64:
        raise _RefusedError(f"integer {shorten(text)} is beyond 64 bits")
    return value


def check_plain(value: object, name: str) -> None:
    """Raise RecordError unless `value`, made in memory, is what strict JSON could have given.

    Measurements are left to their own check, being many.
    """
    try:
        _refuse_unstorable(value, "")
    except _RefusedError as error:
        raise RecordError(f"cannot read {name}: {error}") from error


def _refuse_unstorable(value: object, path: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key, path)
            if key != "measurements_s":
                _refuse_unstorable(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_unstorable(item, f"{path}[{index}]")
    elif value is not None:
        _refuse_scalar(value, path or "the document")


def _refuse_scalar(value: object, path: str) -> None:
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _RefusedError(
                f"{path}: text {shorten(value)} holds NUL or half of a surrogate pair"
            )
    elif isinstance(value, float):
        if not isfinite(value):
            raise _RefusedError(f"{path} is {value}; expected null with a reason under `reasons`")
    elif not isinstance(value, int):
        raise _RefusedError(f"{path} is {shorten(value)}; expected plain data")
    elif not -_INT64 <= value < _INT64:
        raise _RefusedError(f"{path}: integer {shorten(value)} is beyond 64 bits")


def shorten(value: object, limit: int = 60) -> str:
    """Return a value as one short printable line for an error message."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
