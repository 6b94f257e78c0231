"""Nothing passes in silence: each situation in a store, its reason and the exit code of `check`."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracker.model import Correctness, DeviceState, Environment, Peaks, Run, Status
from tracker.store import Store
from tracker.tests.cli.conftest import Command
from tracker.tests.factory import DEVICE, H200, make_case, make_result, make_run

CASE = make_case("relu", n=1 << 26)
TIMES = [1.3e-4 * (1 + 0.001 * (number % 7 - 3)) for number in range(40)]
PLAIN: dict[str, Any] = {"code_fingerprint": None, "warnings": ()}


def run(number: int, times: Sequence[float] = TIMES, **more: Any) -> Run:
    fields = PLAIN | more.pop("fields", {})
    results = more.pop("results", None) or (make_result(CASE, times, **fields),)
    return make_run(f"run-{number:05d}", number, results=results, notes=(), **more)


def head(times: Sequence[float] = TIMES, **fields: Any) -> tuple[Run, Run]:
    """Return a plain base and a head with these fields."""
    return run(1), run(2, times, fields=fields)


SLOWER = [1.1 * time for time in TIMES]
FAILED = {"correctness": Correctness(checked=True, passed=False), "reasons": {"status": "wrong"}}
NO_TIME = {"reasons": {"measurements_s": "no time"}, "summary": None}
OTHER = replace(DEVICE, uuid="GPU-99999999-2222-3333-4444-555555555555")
ADD = make_result(make_case("add", n=1 << 26), TIMES, **PLAIN)
RELU = make_result(CASE, TIMES, **PLAIN)
STALE: dict[str, Any] = {
    "started_at": "2026-01-01T00:00:00Z",
    "finished_at": "2026-01-01T00:00:40Z",
}

# Of a CPU, whose time may be that of its other work.
CPU = Environment("cpu", "a CPU")
ON_CPU = PLAIN | {"median_cycles": None}
THREE = [make_case(kernel, n=1 << 20) for kernel in ("relu", "add", "silu")]


def on_cpu(
    number: int, factors: Sequence[float], status: Status = Status.OK, copy: float = 1.0
) -> Run:
    """Return a run whose cases take so much longer; all but the first have that status."""
    results = tuple(
        make_result(
            case,
            [factor * (1 + 0.002 * (number % 3)) * time for time in TIMES],
            status=status if place else Status.OK,
            peaks=Peaks(copy_bytes_per_s=1e11 / copy * (1 + 0.002 * (number % 2))),
            **ON_CPU,
        )
        for place, (case, factor) in enumerate(zip(THREE, factors, strict=True))
    )
    return run(number, results=results, environment=CPU)


QUIET = tuple(on_cpu(number, (1, 1, 1)) for number in range(1, 13))

SITUATIONS: dict[str, tuple[str, int, tuple[Run, ...]]] = {
    "no change": ("within_noise", 0, head()),
    "a loss": ("significant", 1, head(SLOWER, median_cycles=283_000.0)),
    "a slow clock": ("clock_moved", 4, head(SLOWER)),
    "the first run": ("no_baseline", 0, (run(1),)),
    "a stale baseline": ("stale_baseline", 3, (run(1, **STALE), run(2))),
    "another driver": (
        "other_environment",
        3,
        (run(1), run(2, environment=replace(H200, driver="600.1"))),
    ),
    "a vanished case": ("vanished", 3, (run(1, results=(RELU, ADD)), run(2))),
    "too few measurements": ("too_few", 3, head(TIMES[:3])),
    "no measurement": ("no_sample", 3, head([], status=Status.NO_SAMPLE, **NO_TIME)),
    "a wrong result": ("incorrect", 1, head([], status=Status.INCORRECT, summary=None, **FAILED)),
    "an error": ("error", 1, head([], status=Status.ERROR, **NO_TIME)),
    "zero variance": ("zero_variance", 0, head([1.3e-4] * 40)),
    "a throttled side": ("throttled", 4, head(status=Status.THROTTLED, reasons={"status": "heat"})),
    "a shared device": ("shared_device", 4, head(during=DeviceState(other_processes=2))),
    "over the peak": ("over_peak", 3, head([time / 2 for time in TIMES], median_cycles=128_000.0)),
    "a drop to zero": ("drop_to_zero", 1, head(bytes_moved=0)),
    "another board without copies": (
        "no_copy",
        3,
        (run(1), run(2, device=OTHER, fields={"peaks": Peaks(4.8e12)})),
    ),
    "a loss on a quiet CPU": ("significant", 1, (*QUIET, on_cpu(13, (3, 1, 1)))),
    "a busy CPU": ("busy_machine", 4, (*QUIET, on_cpu(13, (3, 1, 1), Status.NOISY))),
    "a slow CPU": ("machine_moved", 4, (*QUIET, on_cpu(13, (3, 3, 3), copy=3.0))),
    "the same code": (
        "same_code",
        0,
        (run(1, fields={"code_fingerprint": "c"}), run(2, fields={"code_fingerprint": "c"})),
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_situation_has_its_reason_and_exit_code(
    name: str, project: Path, bandwatch: Command
) -> None:
    reason, code, runs = SITUATIONS[name]
    with Store.open(f"sqlite:///{project / 'runs.db'}") as store:
        for one in runs:
            store.record(one)
    answer = bandwatch("check", runs[-1].run_id, "--format", "json")
    assert answer.code == code, answer.out
    rows = json.loads(answer.out)["tables"]["verdicts"]
    found = {entry["code"]: entry["message"] for row in rows for entry in row["reasons"]}
    assert reason in found
    assert found[reason]


def test_an_empty_run_is_undecided(project: Path, bandwatch: Command) -> None:
    with Store.open(f"sqlite:///{project / 'runs.db'}") as store:
        store.record(make_run("run-00001", 1, results=(), notes=()))
    answer = bandwatch("check", "run-00001")
    assert answer.code == 3
    assert "nothing was measured" in answer.out
