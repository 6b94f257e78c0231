"""Runs and results as record documents, and the digest that says whether two are the same."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tracker.model import (
    Checkout,
    Commit,
    Correctness,
    Device,
    DeviceState,
    Environment,
    FirstCall,
    Inputs,
    Peaks,
    Result,
    Run,
    Summary,
    Warn,
)
from tracker.record.parse import Envelope
from tracker.record.validate import SCHEMA_VERSION

_FLAT = (Commit, Correctness, Device, DeviceState, FirstCall, Inputs, Peaks, Summary, Warn)
_ADDED = ("inputs", "flush_bytes")
"""Fields younger than the schema: without a value left out, so that older digests stay true."""


def dump_run(run: Run) -> dict[str, Any]:
    """Return a run as a record document; `parse_run` of it gives an equal run."""
    return {
        "schema": SCHEMA_VERSION,
        "kind": "run",
        **dump_header(run),
        "results": [dump_result(result) for result in run.results],
    }


def dump_header(run: Run) -> dict[str, Any]:
    """Return everything of a run but its results."""
    return {
        "run_id": run.run_id,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "environment": dump_environment(run.environment),
        "device": dump_device(run.device),
        "checkout": dump_checkout(run.checkout),
        "complete": run.complete,
        "command": run.command,
        "ci": dict(run.ci),
        "notes": list(run.notes),
        "demo": run.demo,
    }


def dump_envelope(envelope: Envelope) -> dict[str, Any]:
    """Return one result with its environment and device, for `extra_info["bandwatch"]`."""
    return {
        "schema": SCHEMA_VERSION,
        "kind": "result",
        "environment": dump_environment(envelope.environment),
        "device": dump_device(envelope.device),
        "result": dump_result(envelope.result),
    }


def dump_environment(environment: Environment) -> dict[str, Any]:
    """Return an environment as plain JSON data."""
    return _plain(environment)


def dump_device(device: Device) -> dict[str, Any]:
    """Return a device as plain JSON data."""
    return _plain(device)


def dump_checkout(checkout: Checkout) -> dict[str, Any]:
    """Return a checkout as plain JSON data."""
    return _plain(checkout)


def dump_commit(commit: Commit) -> dict[str, Any]:
    """Return a commit as plain JSON data."""
    return _plain(commit)


def dump_result(result: Result, *, measurements: bool = True) -> dict[str, Any]:
    """Return a result as plain JSON data, without its measurements where they are not asked for."""
    values = {name: _value(getattr(result, name)) for name in _RESULT if name != "measurements_s"}
    for name in _ADDED:
        if values[name] is None:
            del values[name]
    values["case"] = result.case.identity()
    values["status"] = result.status.value
    if measurements:
        values["measurements_s"] = list(result.measurements_s)
    return values


def digest(run: Run) -> str:
    """Return the SHA-256 of a run's content, independent of key order and of the results' order."""
    return digest_of_parts(run, map(result_digest, run.results))


def digest_of_parts(run: Run, parts: Iterable[bytes]) -> str:
    """Return the digest of a run whose results have these digests."""
    whole = hashlib.sha256(canonical(dump_header(run)))
    for part in sorted(parts):
        whole.update(part)
    return whole.hexdigest()


def result_digest(result: Result) -> bytes:
    """Return the SHA-256 of one result's content."""
    part = hashlib.sha256(canonical(dump_result(result, measurements=False)))
    part.update(np.array(result.measurements_s, dtype="<f8").tobytes())
    return part.digest()


def canonical(value: object) -> bytes:
    """Return JSON data as bytes that are the same for equal data."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def _plain(item: object) -> dict[str, Any]:
    return {name: _value(getattr(item, name)) for name in _field_names(type(item))}


def _value(value: object) -> Any:
    if isinstance(value, _FLAT):
        return _plain(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value


_NAMES: dict[type, tuple[str, ...]] = {}


def _field_names(kind: type) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = tuple(f.name for f in fields(kind))
    return _NAMES[kind]


_RESULT = _field_names(Result)
