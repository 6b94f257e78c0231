"""pytest-benchmark's JSON, versions 4 and 5, with and without our record in `extra_info`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracker.errors import RecordError
from tracker.importers.source import (
    Source,
    case_of,
    commit_of,
    device_of,
    make_run,
    name_of,
    timed,
    zoned,
)
from tracker.importers.view import View
from tracker.model import Checkout, Result, Run, Summary
from tracker.occasion import IMPORTED
from tracker.record.assemble import assemble
from tracker.record.parse import Envelope, parse_envelope

TOOL = "pytest-benchmark"
OURS = "bandwatch"
_MAJORS = {"4", "5"}


def fits(document: View) -> bool:
    """Return whether a document is this format's."""
    return {"benchmarks", "machine_info", "commit_info"} <= document.data.keys()


def read(source: Source) -> tuple[Run, ...]:
    """Return the runs: one for each environment among our records, one for all without a record."""
    version = _version(source.view)
    ours: list[Envelope] = []
    others: list[View] = []
    for benchmark in source.view.views("benchmarks"):
        record = benchmark.view_or_empty("extra_info").data.get(OURS)
        if record is None:
            others.append(benchmark)
        else:
            ours.append(_envelope(benchmark, record))
    runs = _recorded(source, ours)
    if others or not runs:
        results = list(_results(others))
        runs += (_foreign(source, version, results, number=len(runs) + 1),)
    return runs


def _version(document: View) -> str:
    version = document.text("version")
    if version.split(".")[0] not in _MAJORS:
        document.refuse("version", f"{TOOL} 4 or 5")
    return version


def _envelope(benchmark: View, record: object) -> Envelope:
    where = benchmark.where(f"extra_info.{OURS}")
    envelope = parse_envelope(record, f"{benchmark.name}: {where}")
    test = envelope.result.test or benchmark.text("fullname")
    return replace(envelope, result=replace(envelope.result, test=test))


def _recorded(source: Source, envelopes: Sequence[Envelope]) -> tuple[Run, ...]:
    if not envelopes:
        return ()
    try:
        return assemble(
            envelopes,
            _checkout(source),
            run_id=source.run_id(TOOL),
            started_at=_started(source.view),
            complete=False,
            notes=(f"{IMPORTED}{TOOL} {_version(source.view)}",),
        )
    except RecordError as error:
        raise RecordError(f"cannot read {source.view.name}: {error}") from None


def _foreign(source: Source, version: str, results: Sequence[Result], *, number: int) -> Run:
    machine = source.view.view("machine_info")
    cpu = machine.view_or_empty("cpu")
    model = cpu.text_or("brand_raw", cpu.text_or("brand", machine.text_or("processor", "CPU")))
    system = f"{machine.text_or('system', '')} {machine.text_or('release', '')}".strip()
    return make_run(
        source,
        TOOL,
        version,
        results,
        number=number,
        started_at=_started(source.view),
        environment=source.environment(
            model, os=system or None, python=machine.text_or("python_version", "") or None
        ),
        device=device_of(f"host {machine.text_or('node', 'unknown')}", model),
        checkout=_checkout(source),
    )


def _started(document: View) -> str:
    # Version 4 writes UTC without saying so.
    return zoned(document.text("datetime")) or document.refuse("datetime", "an ISO 8601 time")


def _checkout(source: Source) -> Checkout:
    info = source.view.view("commit_info")
    commit = commit_of(
        info.text_or("id", ""),
        author_time=zoned(info.text_or("author_time", "")),
        commit_time=zoned(info.text_or("time", "")),
    )
    notes = () if commit else (f"{TOOL} found no commit: {info.text_or('id', 'none')}"[:2000],)
    return source.checkout(
        commit,
        branch=info.text_or("branch", "") or None,
        dirty=info.data.get("dirty") is True,
        notes=notes,
    )


def _results(benchmarks: Sequence[View]) -> Iterator[Result]:
    for benchmark in benchmarks:
        test = benchmark.text("fullname")
        values = benchmark.data.get("params")
        if not isinstance(values, dict):
            values = {} if benchmark.data.get("param") is None else {"id": benchmark.text("param")}
        stats = benchmark.view("stats")
        sample = stats.numbers("data")
        options = benchmark.view_or_empty("options")
        yield timed(
            case_of(test.split("[", 1)[0], TOOL, values),
            sample,
            TOOL,
            summary=None if sample else _summary(stats),
            counters=benchmark.view_or_empty("extra_info").data,  # type: ignore[arg-type]
            reasons={} if sample else {"measurements_s": "--benchmark-save-data was not given"},
            timer=name_of(options.text_or("timer", "unstated")),
            test=test[:2000],
        )


def _summary(stats: View) -> Summary:
    names = ("median", "mean", "min", "max", "q1", "q3", "stddev")
    count = stats.whole_or_none("rounds") or stats.refuse("rounds", "a count above 0")
    return Summary(count, *(stats.number(name) for name in names))
