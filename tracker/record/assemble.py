"""Runs put together: from the envelopes of one suite, or from the shards of one run."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tracker.errors import RecordError
from tracker.model import Checkout, Result, Run
from tracker.record.dump import canonical, dump_envelope, dump_header, dump_result
from tracker.record.parse import Envelope

# What shards of one run may differ in: each covers a part of the suite and of the time.
_MAY_DIFFER = ("started_at", "finished_at", "complete", "command", "notes", "ci")


@dataclass(frozen=True, slots=True)
class Merged:
    """A run put together from shards, and the labels of cases that came twice, equal each time."""

    run: Run
    duplicates: tuple[str, ...]


def new_run_id() -> str:
    """Return an id that no other run has."""
    return uuid.uuid4().hex


def assemble(
    envelopes: Sequence[Envelope],
    checkout: Checkout,
    *,
    run_id: str,
    started_at: str,
    finished_at: str | None = None,
    complete: bool = True,
    command: str | None = None,
    ci: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    demo: bool = False,
) -> tuple[Run, ...]:
    """Return one run for each environment and device among the envelopes, in their order.

    The first keeps `run_id`; each further one gets it with `.2`, `.3` and so on appended.
    Raises RecordError for no envelope, or for one case twice on one device.
    """
    if not envelopes:
        raise RecordError("cannot make a run: nothing was measured; expected at least one result")
    groups: dict[bytes, list[Envelope]] = {}
    for envelope in envelopes:
        document = dump_envelope(envelope)
        groups.setdefault(canonical([document["environment"], document["device"]]), []).append(
            envelope
        )
    return tuple(
        Run(
            run_id=run_id if number == 1 else f"{run_id}.{number}",
            started_at=started_at,
            finished_at=finished_at,
            environment=members[0].environment,
            device=members[0].device,
            checkout=checkout,
            results=_each_once(envelope.result for envelope in members),
            complete=complete,
            command=command,
            ci=dict(ci or {}),
            notes=tuple(notes),
            demo=demo,
        )
        for number, members in enumerate(groups.values(), start=1)
    )


def _each_once(results: Iterable[Result]) -> tuple[Result, ...]:
    found: dict[str, Result] = {}
    for result in results:
        if result.case.fingerprint in found:
            raise RecordError(
                f"cannot make a run: two results of {result.case.label} "
                f"({result.test or 'no test named'}); expected each case once; "
                "give the tests different parameters"
            )
        found[result.case.fingerprint] = result
    return tuple(found.values())


def merge(shards: Sequence[Run]) -> Merged:
    """Return the run whose shards these are: parts of one suite under one run id.

    Equal results that came twice are kept once and named. Raises RecordError for shards of
    different runs, commits, environments or devices, and for a case with two different results.
    """
    if not shards:
        raise RecordError("cannot merge: no shard given; expected at least one record file")
    first, results, duplicates = shards[0], dict[str, Result](), list[str]()
    for shard in shards:
        _refuse_other(first, shard)
        for result in shard.results:
            key = result.case.fingerprint
            held = results.get(key)
            if held is None:
                results[key] = result
                continue
            if canonical(dump_result(held)) != canonical(dump_result(result)):
                raise RecordError(
                    f"cannot merge shards of run {first.run_id}: two different results of "
                    f"{result.case.label}; expected each case in one shard"
                )
            duplicates.append(result.case.label)
    ends = [shard.finished_at for shard in shards if shard.finished_at is not None]
    run = replace(
        first,
        started_at=min((s.started_at for s in shards), key=datetime.fromisoformat),
        finished_at=max(ends, key=datetime.fromisoformat) if len(ends) == len(shards) else None,
        complete=all(shard.complete for shard in shards),
        command=" ; ".join(dict.fromkeys(s.command for s in shards if s.command))[:2000] or None,
        ci={key: value for shard in shards for key, value in shard.ci.items()},
        notes=tuple(dict.fromkeys(note for shard in shards for note in shard.notes)),
        results=tuple(results.values()),
    )
    return Merged(run, tuple(duplicates))


def _refuse_other(first: Run, shard: Run) -> None:
    expected, found = dump_header(first), dump_header(shard)
    differing = [
        name for name in expected if name not in _MAY_DIFFER and expected[name] != found[name]
    ]
    if differing:
        raise RecordError(
            f"cannot merge shards of run {first.run_id}: {', '.join(differing)} differ; expected "
            "one commit in one environment on one device; record them as runs of their own"
        )
