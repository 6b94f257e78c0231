"""The JSON Schema of the record as a compiled check, and what the schema cannot say."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

import fastjsonschema
import numpy as np

from tracker.errors import RecordError
from tracker.record.strict import shorten

SCHEMA_VERSION = 1
# Both sides compute in float64; only the order of additions may differ.
_RELATIVE = 1e-9
_TIME_FIELDS = ("author_time", "commit_time")
_UNTIMED = ("incorrect", "error", "no_sample")
Json = Mapping[str, Any]


@cache
def schema() -> dict[str, Any]:
    """Return the schema that ships with the package."""
    text = files("tracker.record").joinpath(f"schema-{SCHEMA_VERSION}.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _compiled(kind: str) -> Callable[[object], object]:
    # The long arrays of numbers are checked below by C loops: 40 ms become 27 for 100,000 of them.
    definitions = deepcopy(schema()["definitions"])
    definitions["result"]["properties"]["measurements_s"].pop("items")
    root = {
        "$schema": schema()["$schema"],
        "definitions": definitions,
        "$ref": f"#/definitions/{kind}",
    }
    compiled: Callable[[object], object] = fastjsonschema.compile(root, use_default=False)
    return compiled


def check_document(value: object, kind: str, name: str) -> None:
    """Raise RecordError, with the JSON path, unless `value` is a valid `run` or `envelope`."""
    check_version(value, name)
    try:
        _compiled(kind)(value)
    except fastjsonschema.JsonSchemaValueException as error:
        raise RecordError(_told(error, name)) from error
    try:
        _check(value, kind)
    except _InconsistentError as error:
        raise RecordError(f"cannot read {name}: {error}") from error


def check_commit(value: Mapping[str, object], name: str) -> None:
    """Raise RecordError unless `value` is a commit that a record could hold."""
    try:
        _compiled("checkout")({"commit": value})
        _check_commit(value)
    except fastjsonschema.JsonSchemaValueException as error:
        raise RecordError(_told(error, name)) from error
    except _InconsistentError as error:
        raise RecordError(f"cannot read {name}: {error}") from error


def check_time(text: object, name: str) -> None:
    """Raise RecordError unless `text` is a time that a record could hold."""
    check_commit({"sha": "0" * 40, "commit_time": text}, name)


def check_version(value: object, name: str) -> None:
    """Raise RecordError unless `value` is an object that says schema 1."""
    if not isinstance(value, dict):
        raise RecordError(
            f"cannot read {name}: found {shorten(value)}; expected a JSON object with a record"
        )
    version = value.get("schema")
    if type(version) is int and version > SCHEMA_VERSION:
        raise RecordError(
            f"cannot read {name}: record schema {version}; "
            f"this version reads up to {SCHEMA_VERSION}; upgrade bandwatch"
        )
    if type(version) is not int or version != SCHEMA_VERSION:
        raise RecordError(
            f"cannot read {name}: schema is {shorten(version)}; expected {SCHEMA_VERSION}; "
            "is this a Bandwatch record? `bandwatch import` reads other formats"
        )


def _told(error: Any, name: str) -> str:
    path = str(error.name).removeprefix("data").lstrip(".")
    message = str(error.message).removeprefix(str(error.name)).strip()
    message = " ".join(message.split())
    found = "" if isinstance(error.value, dict | list) else f"; found {shorten(error.value)}"
    return f"cannot read {name}: {path or 'the document'} {message[:300]}{found}"


class _InconsistentError(ValueError):
    """Fields that are each valid and together are not."""


def _check(value: object, kind: str) -> None:
    document: Json = value  # type: ignore[assignment]
    if kind == "envelope":
        _check_result(document["result"], "result")
        return
    _check_time(document["started_at"], "started_at")
    _check_time(document.get("finished_at"), "finished_at")
    _check_commit(document["checkout"].get("commit"))
    for index, result in enumerate(document["results"]):
        _check_result(result, f"results[{index}]")


def _check_time(text: str | None, path: str) -> None:
    try:
        if text is not None:
            datetime.fromisoformat(text)
    except ValueError as error:
        raise _InconsistentError(
            f"{path} is {shorten(text)}; expected a date that exists"
        ) from error


def _check_commit(commit: Json | None) -> None:
    if commit is None:
        return
    for name in _TIME_FIELDS:
        _check_time(commit.get(name), f"checkout.commit.{name}")
    parents = commit.get("parents", ())
    if commit["sha"] in parents or len(set(parents)) != len(parents):
        raise _InconsistentError(
            "checkout.commit.parents names the commit itself or one parent twice"
        )


def _check_result(result: Json, path: str) -> None:
    sample = result["measurements_s"]
    _check_numbers(sample, path)
    _check_status(result, path)
    summary = result.get("summary")
    if summary is not None:
        _check_summary(summary, sample, path)
    elif sample:
        raise _InconsistentError(
            f"{path}.summary is null beside {len(sample)} measurements; expected a summary"
        )


def _check_numbers(sample: Sequence[object], path: str) -> None:
    if not sample:
        return
    if not set(map(type, sample)) <= {float, int}:
        index = next(i for i, x in enumerate(sample) if type(x) not in {float, int})
        raise _InconsistentError(
            f"{path}.measurements_s[{index}] must be a number; found {shorten(sample[index])}"
        )
    if not all(map(isfinite, sample)):  # type: ignore[arg-type]
        raise _InconsistentError(f"{path}.measurements_s holds a value that is not finite")
    smallest = min(sample)  # type: ignore[type-var]
    if not smallest > 0:  # type: ignore[operator]
        raise _InconsistentError(
            f"{path}.measurements_s[{sample.index(smallest)}] must be above 0; "
            f"found {shorten(smallest)}"
        )


def _check_status(result: Json, path: str) -> None:
    status, correctness = result["status"], result["correctness"]
    reasons = result.get("reasons", {})
    checked, passed = correctness["checked"], correctness.get("passed")
    timed = bool(result["measurements_s"]) or result.get("summary") is not None
    if checked != (passed is not None):
        raise _InconsistentError(f"{path}.correctness says checked {checked} but passed {passed}")
    if status == "ok" and not timed:
        raise _InconsistentError(f"{path}.status is ok without measurements")
    if status == "ok" and checked and not passed:
        raise _InconsistentError(
            f"{path}.status is ok although correctness failed; expected incorrect"
        )
    if status == "ok" and not checked and "correctness" not in reasons:
        raise _InconsistentError(
            f"{path}.status is ok although correctness was not checked; expected a reason under "
            "`reasons` for `correctness`"
        )
    if status == "incorrect" and passed is not False:
        raise _InconsistentError(f"{path}.status is incorrect but correctness.passed is {passed}")
    if status in _UNTIMED and timed:
        raise _InconsistentError(
            f"{path}.status is {status} but it carries measurements; expected none"
        )
    if timed and not result["measurements_s"] and "measurements_s" not in reasons:
        raise _InconsistentError(
            f"{path} has a summary without measurements; expected a reason under `reasons` for "
            "`measurements_s`"
        )


def _check_summary(summary: Json, sample: Sequence[float], path: str) -> None:
    ordered = ("min_s", "q1_s", "median_s", "q3_s", "max_s")
    values = [summary[name] for name in ordered]
    if values != sorted(values):
        raise _InconsistentError(f"{path}.summary is not in order: expected {' <= '.join(ordered)}")
    if not sample:
        return
    if summary["count"] != len(sample):
        raise _InconsistentError(
            f"{path}.summary.count is {summary['count']} for {len(sample)} measurements"
        )
    array = np.array(sample, dtype=np.float64)
    mean = float(array.mean())
    expected = {
        "min_s": float(array.min()),
        "max_s": float(array.max()),
        "median_s": float(np.median(array)),
        "mean_s": mean,
        "stddev_s": float(array.std(ddof=1)) if array.size > 1 else 0.0,
    }
    for name, value in expected.items():
        if abs(summary[name] - value) > _RELATIVE * max(value, mean):
            raise _InconsistentError(
                f"{path}.summary.{name} is {summary[name]!r} but its measurements give {value!r}"
            )
