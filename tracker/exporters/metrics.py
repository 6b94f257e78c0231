"""The results of single runs for other trackers: Bencher, github-action-benchmark, Prometheus."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from tracker.model import Result, Status
from tracker.queries import RunInfo, results
from tracker.store import Store

# A time of these counts; all others would show as a benchmark that became fast or slow.
_TIMED = frozenset({Status.OK, Status.NOISY})


# Longer than this is no time of a kernel, and its nanoseconds may be more than a float holds.
_LONGEST_S = 1e12


def _timed(store: Store, run: RunInfo) -> Iterator[Result]:
    for result in results(store, run, measurements=False):
        summary = result.summary
        if summary is not None and result.status in _TIMED and summary.max_s < _LONGEST_S:
            yield result


def _named(results: Iterable[Result]) -> Iterator[tuple[str, Result]]:
    """Yield results with names that no other has: the fingerprint too where two labels are one.

    A label does not tell 1 from "1", nor one version of a benchmark from the next.
    """
    found = list(results)
    labels = Counter(result.case.label for result in found)
    for result in found:
        label, key = result.case.label, result.case.fingerprint
        yield (label if labels[label] == 1 else f"{label} {key}"), result


def to_bencher(store: Store, run: RunInfo) -> Iterator[bytes]:
    """Yield Bencher Metric Format: latency in nanoseconds, bandwidth in bytes per second."""
    found: dict[str, Any] = {}
    for name, result in _named(_timed(store, run)):
        summary = result.summary
        if summary is None:
            continue
        measures = {
            "latency": {
                "value": summary.median_s * 1e9,
                "lower_value": summary.q1_s * 1e9,
                "upper_value": summary.q3_s * 1e9,
            }
        }
        if result.bytes_moved and isfinite(highest := result.bytes_moved / summary.q1_s):
            measures["bandwidth"] = {
                "value": result.bytes_moved / summary.median_s,
                "lower_value": result.bytes_moved / summary.q3_s,
                "upper_value": highest,
            }
        found[name] = measures
    yield _json(found)


def to_github_action_benchmark(store: Store, run: RunInfo) -> Iterator[bytes]:
    """Yield what its tool `customSmallerIsBetter` reads: median times in nanoseconds."""
    yield _json(
        [
            {
                "name": f"{name} on {run.gpu_model}",
                "unit": "ns",
                "value": summary.median_s * 1e9,
                "range": f"± {(summary.q3_s - summary.q1_s) / 2 * 1e9:.6g}",
                "extra": f"{summary.count} measurements, environment {run.environment_key}",
            }
            for name, result in _named(_timed(store, run))
            if (summary := result.summary) is not None
        ]
    )


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n").encode()


# Metric without its prefix: unit, help.
_GAUGES = {
    "median_seconds": ("seconds", "Median time of the newest run."),
    "empty_kernel_seconds": ("seconds", "What an empty kernel takes by the same timer."),
    "bandwidth_bytes_per_second": ("bytes_per_second", "Bytes moved over the median time."),
    "copy_fraction": ("", "Bandwidth over that of a copy of the same size in the same run."),
}


def to_openmetrics(store: Store, runs: Iterable[RunInfo]) -> Iterator[bytes]:
    """Yield OpenMetrics text: gauges of runs, each the newest of its GPU model."""
    runs = tuple(runs)
    samples: dict[str, list[str]] = {name: [] for name in _GAUGES}
    for run in runs:
        for result in _timed(store, run):
            labels = _labels(run, result)
            values = (
                result.summary and result.summary.median_s,
                result.peaks.floor_s,
                result.bandwidth,
                result.copy_fraction,
            )
            for name, value in zip(_GAUGES, values, strict=True):
                if value is not None:
                    samples[name].append(f"bandwatch_{name}{labels} {value!r}")
    for name, (unit, told) in _GAUGES.items():
        yield _family(name, unit, told, samples[name])
    yield _family(
        "run_started_timestamp_seconds",
        "seconds",
        "When the newest run began.",
        [f"bandwatch_run_started_timestamp_seconds{_text(_who(r))} {r.started!r}" for r in runs],
    )
    yield _family(
        "results",
        "",
        "Results of the newest run by status.",
        [
            f"bandwatch_results{_text({**_who(run), 'status': status})} {count}"
            for run in runs
            for status, count in run.statuses.items()
        ],
    )
    yield b"# EOF\n"


def _family(name: str, unit: str, told: str, samples: list[str]) -> bytes:
    lines = [f"# TYPE bandwatch_{name} gauge"]
    lines += [f"# UNIT bandwatch_{name} {unit}"] if unit else []
    lines += [f"# HELP bandwatch_{name} {told}", *samples]
    return ("\n".join(lines) + "\n").encode()


def _who(run: RunInfo) -> dict[str, str]:
    return {"gpu_model": run.gpu_model, "device": run.device.uuid}


def _labels(run: RunInfo, result: Result) -> str:
    case = result.case
    return _text(
        {
            **_who(run),
            "case": case.fingerprint,
            "kernel": case.kernel,
            "implementation": case.implementation,
            "dtype": case.dtype,
            "shape": "x".join(map(str, case.shape)),
            "alignment": case.alignment,
            "cache": case.cache,
        }
    )


def _text(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    # https://github.com/OpenObservability/OpenMetrics: escaped-string
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
