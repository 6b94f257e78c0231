"""Envelopes of what a study measures outside the chain of trust: copies, first calls, a model.

The chain checks and times one callable on one device. What is not of that kind is checked and timed
by its study, and kept here in the same record, so that it is tracked like any result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from perftests.harness.record import SCHEMA, clip
from perftests.harness.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from perftests.studies.frame import Scope

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Timed:
    """What was timed and what the study found of it. `seconds` may be empty: then it failed.

    `passed` says whether the output was right, `detail` what was wrong with it. Units: bytes, FLOP.
    """

    kernel: str
    implementation: str
    dtype: str
    shape: tuple[int, ...]
    seconds: Sequence[float]
    timer: str
    passed: bool
    cache: str = "hot"
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=lambda: _NONE)
    bytes_moved: int | None = None
    flop: int | None = None
    worst_error: float | None = None
    worst_ratio: float | None = None
    detail: str | None = None
    first_call: Mapping[str, float | None] = field(default_factory=lambda: _NONE)
    energy: Mapping[str, float | None] | None = None
    source_file: str | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: _NONE)


def keep(scope: Scope, timed: Timed) -> None:
    """Keep the result for the store. A wrong output keeps no time."""
    scope.keep({"schema": SCHEMA, "kind": "result", **scope.facts(), "result": _result(timed)})


def _result(timed: Timed) -> dict[str, Any]:
    seconds = list(timed.seconds) if timed.passed else []
    return {
        "case": {
            "kernel": timed.kernel,
            "implementation": timed.implementation,
            "dtype": timed.dtype,
            "shape": list(timed.shape),
            "alignment": "aligned",
            "cache": timed.cache,
            "parameters": dict(timed.parameters),
            "version": 1,
        },
        "status": ("ok" if seconds else "error") if timed.passed else "incorrect",
        "measurements_s": seconds,
        "summary": summarise(seconds) if seconds else None,
        "bytes_moved": timed.bytes_moved,
        "flop": timed.flop,
        "timer": timed.timer,
        "stop_reason": None,
        "median_cycles": None,
        "correctness": {
            "checked": True,
            "passed": timed.passed,
            "worst_error": timed.worst_error,
            "bound": None,
            "worst_ratio": timed.worst_ratio,
            "detail": None if timed.detail is None else clip(timed.detail),
        },
        "first_call": {
            name: timed.first_call.get(name) for name in ("compile_s", "load_s", "launch_s")
        },
        "before": None,
        "during": None,
        "after": None,
        "peaks": {},
        "code_fingerprint": None,
        "source_file": timed.source_file,
        "source_line": None,
        "test": None,
        "energy": None if timed.energy is None else dict(timed.energy),
        "counters": None,
        "warnings": [],
        "reasons": {
            "median_cycles": "a study's own timer measures no clock",
            "peaks": "what a study times by itself has no yardstick beside it",
            **timed.reasons,
        },
    }
