"""A run turned into rows before the write lock is taken, so that it is held only briefly."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tracker.model import Case, Result, Run
from tracker.record.dump import canonical, digest, dump_environment, dump_header, dump_run
from tracker.record.parse import refuse_twice
from tracker.record.strict import check_plain, shorten
from tracker.record.validate import check_document
from tracker.store.codec import pack, pack_readings
from tracker.store.parts import split

# Of the run's header, what has columns of its own; the rest goes into `detail`.
_IN_COLUMNS = ("run_id", "started_at", "finished_at", "environment", "complete", "demo")


@dataclass(frozen=True, slots=True)
class PreparedResult:
    """One result's rows, but for the ids that only the store can give."""

    case: Case
    fingerprint: str
    columns: dict[str, Any]
    facts_key: str
    measurements: bytes | None
    readings: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run's rows, but for the ids; `facts` by digest: code fingerprint and body."""

    run: Run
    digest: str
    environment: str
    environment_digest: str
    started: float
    statuses: str
    detail: str
    facts: dict[str, tuple[str | None, str]]
    results: tuple[PreparedResult, ...]


THINNED = "thinned by `bandwatch db prune`; the summary is of the whole sample"


def prepare(run: Run, *, thinned: bool = False) -> Prepared:
    """Return a run's rows; `thinned` says that the run was read after its measurements had gone.

    Raises RecordError for a run that no record could hold: a store takes nothing that it could not
    give back, whoever made the run.
    """
    check_run(run, f"run {shorten(run.run_id)}")
    facts: dict[str, tuple[str | None, str]] = {}
    results = tuple(
        prepare_result(_unthinned(result) if thinned else result, facts) for result in run.results
    )
    return prepare_header(run, digest(run), facts, results)


def check_run(run: Run, name: str) -> None:
    """Raise RecordError for a run that no record could hold; `name` is what the error calls it."""
    document = dump_run(run)
    check_plain(document, name)
    check_document(document, "run", name)
    refuse_twice(run.results, name)


def prepare_header(
    run: Run,
    run_digest: str,
    facts: dict[str, tuple[str | None, str]],
    results: tuple[PreparedResult, ...],
) -> Prepared:
    """Return a run's rows where those of its results are made already."""
    header = dump_header(run)
    environment = canonical(dump_environment(run.environment))
    return Prepared(
        run=run,
        digest=run_digest,
        environment=environment.decode(),
        environment_digest=hashlib.sha256(environment).hexdigest(),
        started=epoch(run.started_at),
        statuses=counted(result.columns["status"] for result in results),
        detail=_text({k: v for k, v in header.items() if k not in _IN_COLUMNS}),
        facts=facts,
        results=results,
    )


def _unthinned(result: Result) -> Result:
    """Return a result without the reason that reading gave it for its missing measurements."""
    if result.reasons.get("measurements_s") != THINNED:
        return result
    kept = {key: why for key, why in result.reasons.items() if key != "measurements_s"}
    return replace(result, reasons=kept)


def prepare_result(result: Result, facts: dict[str, tuple[str | None, str]]) -> PreparedResult:
    """Return one result's rows, and add the facts that they refer to."""
    columns, shared, readings = split(result)
    body = canonical(shared)
    key = hashlib.sha256(repr(result.code_fingerprint).encode() + body).hexdigest()[:32]
    facts.setdefault(key, (result.code_fingerprint, body.decode()))
    return PreparedResult(
        case=result.case,
        fingerprint=result.case.fingerprint,
        columns=columns,
        facts_key=key,
        measurements=pack(result.measurements_s) or None,
        readings=pack_readings(readings),
    )


def counted(statuses: Iterable[str]) -> str:
    """Return how many results have which status, as the store keeps it."""
    return _text(dict(sorted(Counter(statuses).items())))


def epoch(time: str) -> float:
    """Return an ISO 8601 time with zone as seconds since 1970."""
    return datetime.fromisoformat(time).timestamp()


def _text(value: object) -> str:
    return canonical(value).decode()


def from_text(text: str) -> Any:
    """Return the plain data of a JSON column."""
    return json.loads(text)
