"""A record document as the project's types."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

from tracker.errors import RecordError
from tracker.model import (
    Case,
    Checkout,
    Commit,
    Correctness,
    Device,
    DeviceState,
    Environment,
    FirstCall,
    Inputs,
    Peaks,
    Result,
    Run,
    Status,
    Summary,
    Warn,
)
from tracker.record.strict import parse_json, read_limited, shorten
from tracker.record.validate import check_document

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Envelope:
    """One result with the environment and device it was measured in."""

    environment: Environment
    device: Device
    result: Result


def load_run(path: str | Path) -> Run:
    """Return the run of a record file.

    Raises RecordError, one line with the JSON path, for a file that is too large, not strict JSON,
    not of schema 1, or inconsistent.
    """
    path = Path(path)
    return parse_run(parse_json(read_limited(path), str(path)), str(path))


def parse_run(data: object, name: str = "record", *, exported: bool = False) -> Run:
    """Return the run of a record document: bytes of strict JSON, or already parsed.

    Cases come as `settled` spells them; those of a run that a store `exported` stay as they are.
    """
    document: Any = parse_json(data, name) if isinstance(data, bytes) else data
    check_document(document, "run", name)
    results = tuple(result_from(item) for item in document["results"])
    if not exported:
        results = tuple(map(_settled, results))
    refuse_twice(results, name)
    return Run(
        run_id=document["run_id"],
        started_at=document["started_at"],
        finished_at=document.get("finished_at"),
        environment=environment_from(document["environment"]),
        device=Device(**document["device"]),
        checkout=checkout_from(document["checkout"]),
        results=results,
        complete=document.get("complete", True),
        command=document.get("command"),
        ci=dict(document.get("ci", {})),
        notes=tuple(document.get("notes", ())),
        demo=document.get("demo", False),
    )


def parse_envelope(data: object, name: str = "envelope") -> Envelope:
    """Return what one benchmark's `extra_info["bandwatch"]` carries."""
    document: Any = parse_json(data, name) if isinstance(data, bytes) else data
    check_document(document, "envelope", name)
    return Envelope(
        environment=environment_from(document["environment"]),
        device=Device(**document["device"]),
        result=_settled(result_from(document["result"])),
    )


def refuse_twice(results: tuple[Result, ...], name: str) -> None:
    """Raise RecordError for a case that stands in a run more than once."""
    first: dict[str, int] = {}
    for index, result in enumerate(results):
        earlier = first.setdefault(result.case.fingerprint, index)
        if earlier != index:
            raise RecordError(
                f"cannot read {name}: results[{index}].case is that of results[{earlier}]: "
                f"{result.case.label[:200]}; expected each case once in a run"
            )


def environment_from(data: Json) -> Environment:
    """Return an environment; the power limit becomes a float, so that its text is one."""
    values = dict(data)
    values["libraries"] = dict(values.get("libraries", {}))
    return Environment(**_floats(values, frozenset({"power_limit_w"})))


def checkout_from(data: Json) -> Checkout:
    """Return the checkout of a run document."""
    values = dict(data)
    commit = values.pop("commit")
    if commit is not None:
        commit = Commit(**{**commit, "parents": tuple(commit.get("parents", ()))})
    return Checkout(**{**values, "commit": commit, "notes": tuple(values.get("notes", ()))})


def case_from(data: Json) -> Case:
    """Return a case from its named values."""
    values = dict(data)
    values["shape"] = tuple(int(n) for n in values["shape"])
    values["parameters"] = dict(values.get("parameters", {}))
    values["version"] = int(values.get("version", 1))
    return Case(**values)


def settled(case: Case) -> Case:
    """Return a case in the one spelling of its values: as JSON and Unicode tell them equal.

    1.0 is 1, which some writers of JSON make of it, and a letter with an accent is one character
    where there is one (NFC), as people cannot see which it was. Else one case would have two
    histories.
    """
    texts = (case.kernel, case.implementation, case.dtype, case.alignment, case.cache)
    values = (*texts, *case.parameters, *case.parameters.values())
    if all(value is _spelled(value) for value in values):
        return case
    parameters = {_spelled(key): _spelled(value) for key, value in case.parameters.items()}
    if len(parameters) != len(case.parameters):
        raise RecordError(
            f"cannot read the case {shorten(case.label, 200)}: two of its parameters have one name"
        )
    return replace(
        case,
        kernel=_spelled(case.kernel),
        implementation=_spelled(case.implementation),
        dtype=_spelled(case.dtype),
        alignment=_spelled(case.alignment),
        cache=_spelled(case.cache),
        parameters=parameters,
    )


def _spelled(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else normalize("NFC", value)
    # Beyond 2**53 a float stands for several whole numbers.
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def _settled(result: Result) -> Result:
    case = settled(result.case)
    return result if case is result.case else replace(result, case=case)


def result_from(data: Json) -> Result:
    """Return one result; whole numbers given for times become floats."""
    summary, cycles = data.get("summary"), data.get("median_cycles")
    if summary is not None:
        values = {name: float(value) for name, value in summary.items() if name != "count"}
        summary = Summary(count=int(summary["count"]), **values)
    return Result(
        case=case_from(data["case"]),
        status=Status(data["status"]),
        measurements_s=tuple(map(float, data["measurements_s"])),
        summary=summary,
        bytes_moved=_whole(data.get("bytes_moved")),
        flop=_whole(data.get("flop")),
        timer=data.get("timer"),
        stop_reason=data.get("stop_reason"),
        median_cycles=None if cycles is None else float(cycles),
        code_fingerprint=data.get("code_fingerprint"),
        source_file=data.get("source_file"),
        source_line=_whole(data.get("source_line")),
        test=data.get("test"),
        **parts_from(data),
    )


def parts_from(data: Json) -> dict[str, Any]:
    """Return, by field, what of a result has types of its own; whole numbers become floats."""
    return {
        "correctness": Correctness(**_floats(data["correctness"], _CORRECTNESS)),
        "first_call": FirstCall(**_floats(data.get("first_call", {}), _FIRST_CALL)),
        "peaks": Peaks(**_floats(data.get("peaks", {}), _PEAKS)),
        "before": _state(data.get("before")),
        "during": _state(data.get("during")),
        "after": _state(data.get("after")),
        "energy": _readings(data.get("energy")),
        "counters": _readings(data.get("counters")),
        "warnings": tuple(Warn(**w) for w in data.get("warnings", ())),
        "reasons": dict(data.get("reasons", {})),
        "inputs": _inputs(data.get("inputs")),
        "flush_bytes": _whole(data.get("flush_bytes")),
    }


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _inputs(data: Json | None) -> Inputs | None:
    if data is None:
        return None
    seeds = {name: _whole(data.get(name)) for name in ("seed", "fresh_seed")}
    return Inputs(**{**data, **seeds})


def _state(data: Json | None) -> DeviceState | None:
    if data is None:
        return None
    values = _floats(data, _STATE)
    values["throttle_reasons"] = tuple(values.get("throttle_reasons", ()))
    if values.get("other_processes") is not None:
        values["other_processes"] = int(values["other_processes"])
    return DeviceState(**values)


def _readings(data: Json | None) -> Mapping[str, Any] | None:
    if data is None:
        return None
    return {k: float(v) if isinstance(v, int) else v for k, v in data.items()}


def _floats(data: Json, names: frozenset[str]) -> dict[str, Any]:
    return {
        name: float(value) if name in names and value is not None else value
        for name, value in data.items()
    }


def _names(kind: type) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.type == (float | None))


_CORRECTNESS = _names(Correctness)
_FIRST_CALL = _names(FirstCall)
_PEAKS = _names(Peaks)
_STATE = _names(DeviceState)
