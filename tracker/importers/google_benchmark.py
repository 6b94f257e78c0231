"""Google Benchmark's JSON: each repetition is one measurement, the mean of its iterations."""

from collections.abc import Iterator, Sequence

from tracker.importers.source import (
    Source,
    case_of,
    device_of,
    failed,
    make_run,
    readings,
    timed,
    zoned,
)
from tracker.importers.view import View
from tracker.model import Result, Run, Scalar

TOOL = "google-benchmark"
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# How long and how often to run: no part of what is measured.
_SETTINGS = ("min_time", "min_warmup_time", "iterations", "repeats")
_CLOCKS = ("real_time", "manual_time", "process_time")
_OWN = {
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions",
    "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit",
    "aggregate_name", "aggregate_unit", "error_occurred", "error_message",
}  # fmt: skip


def fits(document: View) -> bool:
    """Return whether a document is this format's."""
    context = document.data.get("context")
    return "benchmarks" in document.data and isinstance(context, dict)


def read(source: Source) -> tuple[Run, ...]:
    """Return the file's one run."""
    context = source.view.view("context")
    host = context.text_or("host_name", "unknown host")
    date = zoned(context.text("date")) or context.refuse("date", "an ISO 8601 time")
    families: dict[str, list[View]] = {}
    for row in source.view.views("benchmarks"):
        families.setdefault(row.text_or("run_name", row.text("name")), []).append(row)
    results = [_result(name, rows) for name, rows in families.items()]
    model = f"CPU of {host}"
    run = make_run(
        source,
        TOOL,
        context.text_or("library_version", ""),
        [result for result in results if result is not None],
        started_at=date,
        environment=source.environment(model),
        device=device_of(f"host {host}", model),
        checkout=source.checkout(None),
    )
    return (run,)


def _result(name: str, rows: Sequence[View]) -> Result | None:
    case = case_of(*_named(name))
    for row in rows:
        if row.data.get("error_occurred"):
            return failed(case, row.text_or("error_message", "an error without a message"), name)
    singles = [row for row in rows if not _is_aggregate(row)]
    median = [row for row in rows if row.data.get("aggregate_name") == "median"]
    chosen, reasons = singles, {}
    if not singles:
        chosen = median
        reasons = {"measurements_s": "one measurement: the median of repetitions not in the file"}
    if not chosen:
        # A row of an older version that only sums up others, or a complexity fit.
        return None
    counters = {k: v for k, v in chosen[0].data.items() if k not in _OWN and k != "label"}
    return timed(
        case,
        [_seconds(row, "real_time") for row in chosen],
        TOOL,
        counters=readings({"iterations": chosen[0].data.get("iterations"), **counters}),
        reasons=reasons,
        bytes_moved=_bytes(name, chosen[0]),
        timer="real_time",
        test=name[:2000],
    )


def _is_aggregate(row: View) -> bool:
    ends = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
    # Before version 1.5 only the name told.
    return row.text_or("run_type", "") == "aggregate" or (
        "run_type" not in row.data and row.text("name").endswith(ends)
    )


def _seconds(row: View, key: str) -> float:
    unit = row.text_or("time_unit", "ns")
    return row.number(key) * (_UNITS.get(unit) or row.refuse("time_unit", ", ".join(_UNITS)))


def _bytes(name: str, row: View) -> int | None:
    """Return the bytes of one iteration: the rate is over the time that the benchmark chose."""
    rate = row.number_or_none("bytes_per_second")
    if rate is None or row.data.get("threads", 1) != 1:
        return None
    real = any(part in {"real_time", "manual_time"} for part in name.split("/"))
    return round(rate * _seconds(row, "real_time" if real else "cpu_time"))


def _named(name: str) -> tuple[str, str, dict[str, object]]:
    """Return kernel, tool and named values of `BM_copy/4096/threads:2`."""
    kernel, *parts = name.split("/")
    return kernel, TOOL, dict(_values(parts))


def _values(parts: Sequence[str]) -> Iterator[tuple[str, Scalar]]:
    for index, part in enumerate(parts):
        key, separator, text = part.partition(":")
        if key in _SETTINGS or part in _CLOCKS:
            continue
        if separator:
            yield key, _number(text)
        else:
            yield f"arg{index}", _number(part)


def _number(text: str) -> Scalar:
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 19 else text
