"""nvbench's JSON: one run a device; samples where `--jsonbin` wrote them beside the file."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

import numpy as np

from tracker.errors import RecordError
from tracker.importers.source import (
    UNSTATED,
    Source,
    case_of,
    device_of,
    failed,
    make_run,
    name_of,
    timed,
)
from tracker.importers.view import View
from tracker.model import Environment, Result, Run
from tracker.record.strict import read_limited

TOOL = "nvbench"
_MEAN = "nv/cold/time/gpu/mean"
_COUNT = "nv/cold/sample_size"
_RATE = "nv/cold/bw/global/bytes_per_second"
_SAMPLES = "nv/json/bin:nv/cold/sample_times"
Summaries = Mapping[str, Mapping[str, object]]


def fits(document: View) -> bool:
    """Return whether a document is this format's."""
    return {"benchmarks", "devices"} <= document.data.keys()


def read(source: Source) -> tuple[Run, ...]:
    """Return a run for each device that has states; the file tells neither time nor commit."""
    version = source.view.view_or_empty("meta").view_or_empty("version").view_or_empty("nvbench")
    found: dict[int, list[Result]] = {}
    for benchmark in source.view.views("benchmarks"):
        for state in benchmark.views("states"):
            device = state.whole_or_none("device")
            if device is None:
                state.refuse("device", "a device's number")
            found.setdefault(device, []).append(_result(source, benchmark.text("name"), state))
    devices = {view.whole_or_none("id"): view for view in source.view.views("devices")}
    runs = []
    for number, (index, results) in enumerate(sorted(found.items()), start=1):
        if index not in devices:
            raise RecordError(f"cannot read {source.view.name}: no device {index} under `devices`")
        told = version.text_or("string", "")
        runs.append(_run(source, told, devices[index], results, number))
    if not runs:
        raise RecordError(f"cannot read {source.view.name}: no state in it; expected results")
    return tuple(runs)


def _run(source: Source, version: str, device: View, results: list[Result], number: int) -> Run:
    model = device.text("name")
    architecture = device.whole_or_none("sm_version")
    ecc = device.data.get("ecc_state")
    return make_run(
        source,
        TOOL,
        version,
        results,
        number=number,
        notes=("the file tells no time: started_at is when it was last changed",),
        started_at=source.modified(),
        environment=Environment(
            "cuda",
            name_of(source.hints.gpu_model or model),
            compute_capability=f"{architecture // 100}.{architecture % 100 // 10}"
            if architecture
            else None,
            ecc=ecc if isinstance(ecc, bool) else None,
            l2_bytes=device.whole_or_none("l2_cache_size"),
        ),
        device=device_of(
            f"nvbench device {device.whole_or_none('id')}",
            model,
            memory_bytes=device.whole_or_none("global_memory_size"),
            multiprocessors=device.whole_or_none("number_of_sms"),
        ),
        checkout=source.checkout(None),
    )


def _result(source: Source, kernel: str, state: View) -> Result:
    values = dict(_axes(state))
    test = f"{kernel} {state.text_or('name', '')}".strip()
    case = case_of(kernel, TOOL, values)
    if state.data.get("is_skipped"):
        return failed(case, state.text_or("skip_reason", "skipped without a reason"), test)
    summaries = {
        summary.text("tag"): {item.text("name"): item.data.get("value") for item in _data(summary)}
        for summary in state.views("summaries")
    }
    mean, count = _number(summaries, _MEAN), _number(summaries, _COUNT)
    if mean is None:
        state.refuse("summaries", f"one with the tag {_MEAN}")
    sample = _sample(source.path, summaries)
    why = f"one measurement: the mean of {count or 0:.0f} samples; --jsonbin was not given"
    rate = _number(summaries, _RATE)
    numbers = {tag: _number(summaries, tag) for tag in summaries if not tag.startswith("nv/json")}
    return timed(
        case,
        sample or (mean,),
        TOOL,
        counters={tag: value for tag, value in numbers.items() if value is not None},
        reasons={} if sample else {"measurements_s": why},
        bytes_moved=None if rate is None else round(rate * mean),
        timer="cuda events",
        test=test[:2000],
    )


def _axes(state: View) -> Iterator[tuple[str, object]]:
    for axis in state.views("axis_values"):
        name, value = axis.text("name"), axis.data.get("value", UNSTATED)
        whole = axis.text_or("type", "") == "int64"
        # The type axis of most suites is called T.
        yield "dtype" if name == "T" else name, axis.whole_or_none("value") if whole else value


def _data(summary: View) -> Iterator[View]:
    return summary.views("data") if summary.data.get("data") is not None else iter(())


def _number(summaries: Summaries, tag: str) -> float | None:
    value = summaries.get(tag, {}).get("value")
    try:
        return None if value is None else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _sample(path: Path, summaries: Summaries) -> tuple[float, ...]:
    """Return the samples beside the file; only files of its own folder `FILE-bin` are read."""
    named = summaries.get(_SAMPLES, {}).get("filename")
    if not isinstance(named, str):
        return ()
    beside = path.with_name(f"{path.name}-bin") / PurePath(named).name
    if not beside.is_file():
        return ()
    data = read_limited(beside)
    if len(data) % 4:
        raise RecordError(f"cannot read {beside}: {len(data)} bytes; expected 32-bit floats")
    sample = np.frombuffer(data, "<f4").astype(np.float64)
    if not np.isfinite(sample).all():
        raise RecordError(f"cannot read {beside}: it holds NaN or infinity; expected seconds")
    return tuple(sample.tolist())
