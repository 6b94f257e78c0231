"""What every foreign format needs: cases from names, results without a check, runs with an id."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from tracker.importers.view import View
from tracker.model import (
    Case,
    Checkout,
    Commit,
    Correctness,
    Device,
    Environment,
    Result,
    Run,
    Scalar,
    Status,
    Summary,
)
from tracker.occasion import IMPORTED
from tracker.record.dump import canonical
from tracker.record.parse import settled
from tracker.stats.summary import summarize

UNSTATED = "unstated"
_NAME = 200
_TEXT = 2000
_READINGS = 200
_PARAMETERS = 50
# Named values that say what a case's own fields mean.
_FIELDS = ("implementation", "dtype", "alignment", "cache")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Hints:
    """What the files do not say and the person who imports them does.

    `gpu_model` was measured at `commit`; all files are shards of the run `run_id`.
    """

    gpu_model: str | None = None
    commit: Commit | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One foreign file: its document, the digest of its bytes, and the hints that hold for it."""

    path: Path
    view: View
    digest: str
    hints: Hints = field(default_factory=Hints)

    def run_id(self, tool: str, number: int = 1) -> str:
        """Return the id of a file's run: the same for the same bytes."""
        whole = self.hints.run_id or f"{tool}-{self.digest[:32]}"
        return whole if number == 1 else f"{whole}.{number}"

    def modified(self) -> str:
        """Return when the file was last changed, for formats that tell no time."""
        stamp = datetime.fromtimestamp(int(self.path.stat().st_mtime), UTC)
        return stamp.isoformat(timespec="seconds")

    def checkout(self, told: Commit | None, **facts: Any) -> Checkout:
        """Return the checkout: the commit that the hints name goes before what the file tells."""
        if self.hints.commit is not None:
            return Checkout(commit=self.hints.commit, notes=("the commit was named at the import",))
        return Checkout(commit=told, **facts)

    def environment(self, model: str, **facts: Any) -> Environment:
        """Return the environment: a CPU's, or that of the GPU model that the hints name."""
        backend = "cpu" if self.hints.gpu_model is None else "cuda"
        return Environment(backend, name_of(self.hints.gpu_model or model), **facts)


def make_run(
    source: Source,
    tool: str,
    version: str,
    results: Iterable[Result],
    *,
    number: int = 1,
    notes: Sequence[str] = (),
    **facts: Any,
) -> Run:
    """Return a file's run; it says where it came from, and counts as a part of a suite."""
    told = f"{IMPORTED}{tool} {version}".strip()
    return Run(
        run_id=source.run_id(tool, number),
        finished_at=None,
        results=tuple(results),
        complete=False,
        notes=(told[:_TEXT], *notes),
        **facts,
    )


def name_of(text: str) -> str:
    """Return a name of at most 200 characters; a longer one ends in a digest, so stays distinct."""
    if len(text) <= _NAME:
        return text or UNSTATED
    return f"{text[: _NAME - 17]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def case_of(kernel: str, tool: str, values: Mapping[str, object]) -> Case:
    """Return the case of a foreign benchmark with its named values.

    Values called implementation, dtype, alignment or cache become those; the rest are parameters.
    What is not said is `unstated`; an implementation that is not said is the tool's name.
    """
    named = {key: scalar(value) for key, value in values.items()}
    own = {key: name_of(str(named.pop(key))) for key in _FIELDS if isinstance(named.get(key), str)}
    if len(named) > _PARAMETERS:
        named = {"values": scalar(dict(sorted(named.items())))}
    case = Case(
        kernel=name_of(kernel),
        implementation=own.get("implementation", tool),
        dtype=own.get("dtype", UNSTATED),
        shape=(),
        alignment=own.get("alignment", UNSTATED),
        cache=own.get("cache", UNSTATED),
        parameters={name_of(key): value for key, value in sorted(named.items())},
    )
    return settled(case)


def scalar(value: object) -> Scalar:
    """Return a parameter's value; one that is no short scalar is told by its type and digest."""
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else canonical(value).decode()
    if len(text) <= _NAME:
        return text
    return f"{type(value).__name__} sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def timed(
    case: Case,
    sample: Sequence[float],
    tool: str,
    *,
    summary: Summary | None = None,
    counters: Mapping[str, float | str | None] | None = None,
    reasons: Mapping[str, str] | None = None,
    **facts: Any,
) -> Result:
    """Return a result of a tool that checks nothing: its correctness is unknown, with the reason.

    Without a sample the summary counts. A time that is not positive gives no sample at all.
    """
    why = {"correctness": f"{tool} checks no output", **(reasons or {})}
    numbers = (*sample, *((summary.min_s,) if summary else ()))
    status = Status.OK
    if not numbers or min(numbers) <= 0:
        status, sample, summary = Status.NO_SAMPLE, (), None
        why["status"] = "the file holds no time above 0"
    elif sample:
        summary = summarize(sample)
    else:
        why.setdefault("measurements_s", "the file holds the summary only")
    return Result(
        case=case,
        status=status,
        measurements_s=tuple(sample),
        summary=summary,
        correctness=Correctness(checked=False),
        counters=readings(counters or {}) or None,
        reasons=why,
        **facts,
    )


def failed(case: Case, why: str, test: str) -> Result:
    """Return the result of a benchmark that ended in an error or was skipped."""
    reasons = {"status": why[:_TEXT], "correctness": "nothing ran to its end"}
    return Result(case=case, status=Status.ERROR, test=test[:_TEXT], reasons=reasons)


def readings(values: Mapping[str, object]) -> dict[str, float | str | None]:
    """Return the numbers and short texts among a file's further values, at most 200.

    A number that is not finite, such as the noise that nvbench finds in few samples, becomes None.
    """
    kept: dict[str, float | str | None] = {}
    for key, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            kept[name_of(key)] = float(value) if isfinite(value) else None
        elif isinstance(value, str | bool):
            kept[name_of(key)] = str(value)[:_TEXT]
    return dict(list(kept.items())[:_READINGS])


def commit_of(sha: str, **facts: Any) -> Commit | None:
    """Return a commit, None for what is no commit's id."""
    return Commit(sha, **facts) if _SHA.fullmatch(sha) else None


def device_of(uuid: str, name: str, **facts: Any) -> Device:
    """Return a device with names of storable length."""
    return Device(name_of(uuid), name_of(name), **facts)


def zoned(text: str) -> str | None:
    """Return a time as ISO 8601 with zone, UTC where it names none; None for what is no time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def from_milliseconds(value: float) -> str:
    """Return a time in milliseconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(value / 1e3, UTC).isoformat(timespec="milliseconds")
