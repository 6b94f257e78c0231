"""The envelope of one result: strict JSON data of record schema 1.

A value that does not exist is None and its reason stands under `reasons`; NaN and infinity never
pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from perftests.harness.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perftests.harness.calibrate import Peaks
    from perftests.harness.compare import Comparison
    from perftests.harness.sampling import Sample
    from perftests.harness.settings import Settings
    from perftests.harness.state import State
    from perftests.harness.workload import Workload

SCHEMA = 1
_LONGEST_TEXT = 2000


@dataclass
class Findings:
    """What is known of one case so far; filled in as the chain goes on.

    `walls` says where the time went, in seconds: `total`, `yardsticks`, `timing` (warm-up and
    loop) and `busy`, the device's part of the timing. It is not part of the record.
    """

    workload: Workload
    mode: str
    test: str | None = None
    status: str = "error"
    sample: Sample | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    correct: bool | None = None
    detail: str | None = None
    first_call: dict[str, float | None] = field(default_factory=dict)
    states: dict[str, State | None] = field(default_factory=dict)
    peaks: Peaks | None = None
    inputs: dict[str, Any] | None = None
    flush_bytes: int | None = None
    energy: dict[str, float | None] | None = None
    counters: dict[str, float | str | None] | None = None
    walls: dict[str, float] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def envelope(
    findings: Findings, environment: Mapping[str, Any], device: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record of one result with its environment and device."""
    return {
        "schema": SCHEMA,
        "kind": "result",
        "environment": dict(environment),
        "device": dict(device),
        "result": _result(findings),
    }


def _result(found: Findings) -> dict[str, Any]:
    workload, sample = found.workload, found.sample
    reasons = dict(found.reasons)
    if found.inputs and found.inputs["distribution"] is None:
        reasons["inputs.distribution"] = "the workload does not name it"
    summary = summarise(sample.seconds) if sample and sample.seconds else None
    result: dict[str, Any] = {
        "case": _case(workload, found.mode),
        "status": found.status,
        "measurements_s": list(sample.seconds) if sample else [],
        "summary": summary,
        "bytes_moved": workload.bytes_moved,
        "flush_bytes": found.flush_bytes,
        "flop": workload.flop,
        "timer": sample.timer if sample else None,
        "stop_reason": sample.stop_reason if sample else None,
        "median_cycles": _cycles(summary, sample, reasons),
        "correctness": _correctness(found),
        "inputs": found.inputs,
        "first_call": {
            name: found.first_call.get(name) for name in ("compile_s", "load_s", "launch_s")
        },
        "before": _state(found, "before"),
        "during": _state(found, "during"),
        "after": _state(found, "after"),
        "peaks": dict(found.peaks.__dict__) if found.peaks else {},
        "code_fingerprint": workload.fingerprint,
        "source_file": workload.source_file,
        "source_line": workload.source_line,
        "test": found.test,
        "energy": found.energy,
        "counters": found.counters,
        "warnings": [
            {"code": code, "message": clip(message)} for code, message in found.warnings.items()
        ],
        "reasons": {path: clip(reason) for path, reason in reasons.items()},
    }
    strict: dict[str, Any] = _strict(result, "", result["reasons"])
    return strict


def _case(workload: Workload, mode: str) -> dict[str, Any]:
    return {
        "kernel": workload.kernel,
        "implementation": workload.implementation,
        "dtype": workload.identity_dtype,
        "shape": list(workload.identity_shape),
        "alignment": workload.identity_alignment,
        "cache": mode,
        "parameters": dict(workload.parameters),
        "version": workload.version,
    }


def drawn(workload: Workload, settings: Settings) -> dict[str, Any]:
    """Return what is needed to draw a workload's inputs again, as the record carries it."""
    return {
        "seed": settings.seed,
        "fresh_seed": settings.fresh_seed,
        "distribution": None if workload.distribution is None else clip(workload.distribution),
        "specials": workload.specials,
    }


def _cycles(
    summary: Mapping[str, float] | None, sample: Sample | None, reasons: dict[str, str]
) -> float | None:
    """Return the median in cycles of the clock that was measured beside the sample."""
    if sample is None or summary is None:
        return None
    if sample.sm_clock_hz is None:
        reasons["median_cycles"] = "no clock is measured beside a host timer"
        return None
    return summary["median_s"] * sample.sm_clock_hz


def _correctness(found: Findings) -> dict[str, Any]:
    """Return the worst of all comparisons made for this result."""
    seen = found.comparisons
    worst = max(seen, key=lambda comparison: comparison.worst_error, default=None)
    ratios = [c.worst_ratio for c in seen if c.worst_ratio is not None]
    return {
        "checked": bool(seen),
        "passed": found.correct,
        "worst_error": worst.worst_error if worst else None,
        "bound": worst.bound if worst else None,
        "worst_ratio": max(ratios, default=None),
        "detail": clip(found.detail) if found.detail else None,
    }


def _state(found: Findings, name: str) -> dict[str, Any] | None:
    state = found.states.get(name)
    return None if state is None else state.as_record()


def clip(text: str) -> str:
    """Return the text, cut to what a record may hold."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _is_finite(value: object) -> bool:
    return type(value) is float and isfinite(value)


def _strict(value: Any, path: str, reasons: dict[str, str]) -> Any:
    """Return the value with every NaN or infinity replaced by None and a reason."""
    if isinstance(value, dict):
        return {
            key: _strict(item, f"{path}.{key}".lstrip("."), reasons) for key, item in value.items()
        }
    if isinstance(value, list):
        if all(map(_is_finite, value)):  # the measurements: thousands
            return value
        return [_strict(item, f"{path}.{index}", reasons) for index, item in enumerate(value)]
    if isinstance(value, float) and not isfinite(value):
        reasons.setdefault(path, f"the value was {value}, which a record cannot hold")
        return None
    return value
