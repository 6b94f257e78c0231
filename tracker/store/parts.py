"""A result in the parts that are stored: columns, facts shared by many, readings of its own."""

from collections.abc import Mapping
from typing import Any

from tracker.model import Case, Result, Status, Summary
from tracker.record.dump import dump_result
from tracker.record.parse import parts_from

# What a field's parts are called where only some of them repeat from run to run.
_REPEATING = {
    "correctness": ("checked", "passed", "bound", "detail"),
    "peaks": ("theoretical_bytes_per_s", "copy_source", "theoretical_flop_per_s"),
}
_FACTS = (
    "flop",
    "timer",
    "stop_reason",
    "source_file",
    "source_line",
    "test",
    "reasons",
    "inputs",
    "flush_bytes",
)
_READINGS = (
    "first_call",
    "before",
    "during",
    "after",
    "energy",
    "counters",
    "warnings",
)
# Here null says something: a counter that was asked for and did not exist.
_VERBATIM = ("energy", "counters")


def split(result: Result) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return a result's columns, facts and readings, without what is null or empty."""
    whole = dump_result(result, measurements=False)
    columns = {
        "status": whole["status"],
        "bytes_moved": whole["bytes_moved"],
        "copy_bytes_per_s": whole["peaks"].pop("copy_bytes_per_s"),
        "median_cycles": whole["median_cycles"],
        "shared": is_shared(result),
        **(whole["summary"] or _NO_SUMMARY),
    }
    facts = {name: whole.get(name) for name in _FACTS}
    readings = {name: whole[name] for name in _READINGS}
    for name, repeating in _REPEATING.items():
        facts[name] = {k: v for k, v in whole[name].items() if k in repeating}
        readings[name] = {k: v for k, v in whole[name].items() if k not in repeating}
    return columns, _slim(facts), _slim(readings)


def is_shared(result: Result) -> bool:
    """Return whether another process used the device before, during or after."""
    states = (result.before, result.during, result.after)
    return any(state is not None and state.other_processes for state in states)


# In the order of `Summary`.
_NO_SUMMARY: Mapping[str, None] = dict.fromkeys(
    ("count", "median_s", "mean_s", "min_s", "max_s", "q1_s", "q3_s", "stddev_s")
)


def _slim(values: dict[str, Any]) -> dict[str, Any]:
    slim = {}
    for name, value in values.items():
        kept = value
        if isinstance(value, dict) and name not in _VERBATIM:
            kept = {k: v for k, v in value.items() if v is not None and v != []}
        # A device state of which nothing is known is still a state: only null is left out.
        if kept is None or (kept in ({}, []) and name not in (*_VERBATIM, *_STATES)):
            continue
        slim[name] = kept
    return slim


_STATES = ("before", "during", "after")


def join(
    case: Case,
    columns: Mapping[str, Any],
    facts: Mapping[str, Any],
    code_fingerprint: str | None,
    readings: Mapping[str, Any],
    measurements_s: tuple[float, ...],
) -> Result:
    """Return the result that `split` was given; `columns` may hold more."""
    parts = {**facts, **readings}
    for name in _REPEATING:
        parts[name] = {**facts.get(name, {}), **readings.get(name, {})}
    if columns["copy_bytes_per_s"] is not None:
        parts["peaks"]["copy_bytes_per_s"] = columns["copy_bytes_per_s"]
    known = columns["count"] is not None
    return Result(
        case=case,
        status=Status(columns["status"]),
        measurements_s=measurements_s,
        summary=Summary(*(columns[name] for name in _NO_SUMMARY)) if known else None,
        bytes_moved=columns["bytes_moved"],
        flop=facts.get("flop"),
        timer=facts.get("timer"),
        stop_reason=facts.get("stop_reason"),
        median_cycles=columns["median_cycles"],
        code_fingerprint=code_fingerprint,
        source_file=facts.get("source_file"),
        source_line=facts.get("source_line"),
        test=facts.get("test"),
        **parts_from(parts),
    )
