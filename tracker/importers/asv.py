"""asv's results files (`results/MACHINE/COMMIT-ENV.json`), format versions 1 and 2."""

import itertools
from collections.abc import Iterator, Mapping
from math import inf, isfinite, isnan, prod
from pathlib import Path
from typing import Any

from tracker.errors import RecordError
from tracker.importers.source import (
    Source,
    case_of,
    commit_of,
    device_of,
    failed,
    from_milliseconds,
    make_run,
    timed,
)
from tracker.importers.view import View
from tracker.model import Result, Run
from tracker.record.strict import parse_json, read_limited, shorten

TOOL = "asv"
BESIDE = frozenset({"machine.json", "benchmarks.json"})
_INFINITE = (inf, -inf)
_STATS = ("stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75", "stats_number")


def fits(document: View) -> bool:
    """Return whether a document is this format's."""
    return {"results", "commit_hash", "params"} <= document.data.keys()


def read(source: Source) -> tuple[Run, ...]:
    """Return the file's one run; only times are kept, what is counted or weighed is noted."""
    view = source.view
    machine = view.view("params")
    commit = commit_of(view.text("commit_hash"), commit_time=from_milliseconds(view.number("date")))
    if commit is None:
        view.refuse("commit_hash", "a commit's id")
    known = _known(source.path)
    results: list[Result] = []
    other, started = [], []
    for name, row in _rows(view):
        if _kind(name, known) != "time":
            other.append(name)
            continue
        results += _results(name, row, known.get(name, {}), view.name)
        started += [row["started_at"]] if isinstance(row.get("started_at"), int | float) else []
    model = machine.text_or("cpu", "CPU") or "CPU"
    host = machine.text_or("machine", "unknown")
    note = f"left out {len(other)} benchmarks that measure no time: {', '.join(other[:5])}"
    run = make_run(
        source,
        TOOL,
        f"results {view.whole_or_none('version') or 1}",
        results,
        notes=(note[:2000],) if other else (),
        started_at=from_milliseconds(min(started, default=view.number("date"))),
        environment=source.environment(
            model,
            os=machine.text_or("os", "") or None,
            python=view.text_or("python", "") or None,
            libraries=_libraries(view),
        ),
        device=device_of(f"host {host}", model),
        checkout=source.checkout(commit),
    )
    return (run,)


def _libraries(view: View) -> dict[str, str]:
    required = view.view_or_empty("requirements")
    return {name: required.text_or(name, "newest") for name in list(required.data)[:100]}


def _rows(view: View) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each benchmark's name with its values by column, lists by combination of parameters."""
    columns = view.data.get("result_columns")
    for name, value in view.view("results").data.items():
        if isinstance(columns, list):
            if value is not None and not isinstance(value, list):
                view.view("results").refuse(name, "a list of columns")
            yield name, dict(zip(columns, value or [], strict=False))
        elif isinstance(value, dict):
            yield name, {**value, "result": _listed(value.get("result"))}
        else:
            yield name, {"result": [value]}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _kind(name: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    told = known.get(name, {}).get("type")
    # asv itself goes by the beginning of the function's name.
    return str(told) if told else name.rpartition(".")[2].split("_")[0].lower()


def _known(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return what `benchmarks.json`, one folder up, says of benchmarks; nothing where absent."""
    beside = path.parent.parent / "benchmarks.json"
    if not beside.is_file():
        return {}
    found = View.of(parse_json(read_limited(beside), str(beside)), str(beside))
    return {key: value for key, value in found.data.items() if isinstance(value, dict)}


def _results(
    name: str, row: Mapping[str, Any], known: Mapping[str, Any], file: str
) -> Iterator[Result]:
    params = row.get("params") or []
    names = known.get("param_names") or [f"param{n}" for n in range(1, len(params) + 1)]
    version = row.get("version") or known.get("version")
    results = _listed(row.get("result"))
    combinations = prod(map(len, params))
    # Null alone says that the benchmark failed as a whole.
    if len(results) != combinations and results != [None]:
        told = f"{name} has {len(results)} results for {combinations} combinations of parameters"
        raise RecordError(f"cannot read {file}: {told}; expected one each")
    pairs = zip(itertools.product(*params), results, strict=False)
    for index, (values, result) in enumerate(pairs):
        named = dict(zip(names, values, strict=False))
        if isinstance(version, str):
            # A changed benchmark is another case: its old series ends.
            named["version"] = version[:16]
        case = case_of(name, TOOL, named)
        if result is None:
            yield failed(case, "asv recorded a failure", name)
        elif not isinstance(result, int | float) or result in _INFINITE:
            found = f"{name} gave {shorten(result)}; expected seconds, null or NaN"
            raise RecordError(f"cannot read {file}: {found}")
        elif not isnan(result):
            # NaN says that the case was skipped.
            yield _timed(case, row, index, float(result), name)


def _timed(case: Any, row: Mapping[str, Any], index: int, result: float, name: str) -> Result:
    samples = row.get("samples") or []
    sample = samples[index] if index < len(samples) and samples[index] else None
    stats = {
        key: values[index]
        for key in _STATS
        if isinstance(values := row.get(key), list) and index < len(values)
    }
    why = "one measurement: the median of samples not in the file (--record-samples)"
    return timed(
        case,
        [float(x) for x in sample] if sample else (result,),
        TOOL,
        counters={k: v for k, v in stats.items() if isinstance(v, int | float) and isfinite(v)},
        reasons={} if sample else {"measurements_s": why},
        test=name[:2000],
    )
