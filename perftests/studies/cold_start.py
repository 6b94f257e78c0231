"""First calls, with empty and filled code caches, and the steady state after them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.studies.cold_start_report import (
    EMPTY,
    FILLED,
    UNITS,
    Found,
    call_rows,
    draw,
    first_rows,
    verdict,
)
from perftests.studies.first_call import ELEMENTS, FirstCall, caches, case_of
from perftests.studies.frame import Findings, Scope, Study, missing
from perftests.studies.kept import Timed, keep
from perftests.studies.recording import ROOT
from perftests.studies.tables import Section
from tracker.last_words import telling_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WAYS = (
    "relu/torch",
    "relu/cuda_vector",
    "add/cuda_vector",
    "fused_transform/cuda_vector",
    "relu/triton",
    "relu/torch_compile",
)
CPU_WAYS = ("relu/torch", "relu/cuda_vector", "add/cuda_vector", "fused_transform/cuda_vector")
ANOTHER_ROUND_S = 12.0
"""A round is repeated while the rounds together took no longer than this."""
_ROUNDS = 3
_TIMEOUT_S = 180
CLAIM = (
    "The first call of a kernel, the cold start, must be kept apart from warm ones: it compiles "
    'and loads, and tests and timings begin after it. Source: the article "Elementwise '
    'optimisation in practice" (ReLU), whose test strategy names cold start against warm for '
    "shapes up to 32768 and publishes no time."
)


@dataclass
class _Child:
    """A process that waits for its turn, or the reason why there is none."""

    way: str
    state: str
    process: subprocess.Popen[str]
    began: float = field(default_factory=time.perf_counter)


def run(scope: Scope) -> Findings:
    """Measure first calls in fresh processes, empty caches first, then the caches they filled."""
    device = "cpu"
    if scope.gpu:
        device = f"cuda:{scope.device.index or 0}"
    bench = scope.session.bench(scope.device)
    with bench.lock.alone():
        found, failed = measured(WAYS if scope.gpu else CPU_WAYS, device, small=scope.small)
    return study(scope, found, failed)


def study(scope: Scope, found: Sequence[Found], failed: dict[str, str]) -> Findings:
    """Write up what was found."""
    for each in found:
        _keep(scope, each)
    firsts, calls = first_rows(found), call_rows(found)
    sections = [
        Section("First call", _HOW_GPU if scope.gpu else _HOW_CPU, firsts, UNITS),
        Section("Then", _THEN, calls, UNITS),
        *(missing(way, why) for way, why in failed.items()),
    ]
    if not scope.gpu:
        why = "Triton and torch.compile are measured on a GPU only"
        sections.append(missing("Compilers of GPU code", why))
    if not found:
        raise RuntimeError(f"no first call was measured: {'; '.join(failed.values())}")
    told = verdict(firsts, calls, gpu=scope.gpu)
    return Findings(tuple(sections), told, lambda figure: draw(figure, found))


def measured(
    ways: Sequence[str], device: str, *, small: bool
) -> tuple[list[Found], dict[str, str]]:
    """Return what was found of each way and state of the caches, and what failed with its reason.

    A round has caches of its own.
    """
    runs: dict[tuple[str, str], list[FirstCall]] = {}
    failed: dict[str, str] = {}
    began = time.perf_counter()
    for number in range(1 if small else _ROUNDS):
        if number and time.perf_counter() - began > ANOTHER_ROUND_S:
            break
        with tempfile.TemporaryDirectory(prefix="bandwatch-cold-") as folder:
            _round(ways, device, Path(folder), runs, failed)
    return [Found(way, state, tuple(all_)) for (way, state), all_ in runs.items()], failed


def _round(
    ways: Sequence[str],
    device: str,
    folder: Path,
    runs: dict[tuple[str, str], list[FirstCall]],
    failed: dict[str, str],
) -> None:
    """Call every way once with an empty cache, then once with the one that it has filled."""
    turns = [(way, state) for state in (EMPTY, FILLED) for way in ways]
    with _waiting(turns, device, folder) as children:
        for child in children:
            if child.way in failed:
                continue
            try:
                runs.setdefault((child.way, child.state), []).append(_answer(child))
            except RuntimeError as error:
                failed[child.way] = str(error)
                runs.pop((child.way, child.state), None)


@contextmanager
def _waiting(
    turns: Sequence[tuple[str, str]], device: str, folder: Path
) -> Iterator[Iterator[_Child]]:
    """Give the processes in turn; a few ahead of the one that is called import already."""
    ahead = max(2, (os.cpu_count() or 2) - 2)
    started: list[_Child] = []

    def children() -> Iterator[_Child]:
        for index in range(len(turns)):
            while len(started) < min(len(turns), index + ahead):
                way, state = turns[len(started)]
                started.append(_start(way, state, device, folder / way.replace("/", "-")))
            yield started[index]

    try:
        yield children()
    finally:
        for child in started:
            child.process.kill()
            child.process.communicate()


def _start(way: str, state: str, device: str, folder: Path) -> _Child:
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "perftests.studies.first_call", way, device],
        cwd=ROOT,
        env={**os.environ, **caches(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return _Child(way, state, process)


def _answer(child: _Child) -> FirstCall:
    """Wait until a process is ready, let it go on and return what it measured."""
    process = child.process
    if process.stdout is not None:
        process.stdout.readline()
    try:
        out, err = process.communicate("go\n", timeout=_TIMEOUT_S)
    except (subprocess.TimeoutExpired, BrokenPipeError) as error:
        raise RuntimeError(f"its process with the cache {child.state} hung: {error}") from error
    if process.returncode:
        raise RuntimeError(
            f"its process with the cache {child.state} failed and said: {telling_line(err)}"
        )
    return FirstCall(**json.loads(out.strip().splitlines()[-1]))


def _keep(scope: Scope, found: Found) -> None:
    """Keep the first calls for the store, a case for each state of the caches."""
    kernel, implementation = found.way.split("/")
    case = case_of(kernel)
    passed = all(run.right for run in found.runs)
    reasons = {}
    if found.load_s is None:
        reasons["first_call.load_s"] = "the tool does not tell loading apart"
    keep(
        scope,
        Timed(
            kernel=kernel,
            implementation=implementation,
            dtype=case.dtype,
            shape=case.shape,
            seconds=[run.first_s for run in found.runs],
            timer="host_clock_first_call",
            passed=passed,
            detail=None if passed else "the first call's output was wrong",
            cache="first_call",
            parameters={**case.parameters, "code_cache": found.state},
            first_call={
                "compile_s": found.compile_s,
                "load_s": found.load_s,
                "launch_s": found.launch_s,
            },
            source_file="perftests/studies/cold_start.py",
            reasons=reasons,
        ),
    )


_COMMON = (
    f"fp32, {ELEMENTS} values; medians over as many fresh processes as `processes` says, with "
    "code caches of their own, first empty, then as that left them; imports run in several "
    "processes at once, the rest alone; "
    "`compile` is the time until machine code is there, compiled or found; `launch` is the rest; "
    "`in steady calls` is over the steady call of the same processes, in which processes differ"
)
_HOW_GPU = (
    f"{_COMMON}. Triton's launcher, which a C compiler makes, is in `launch`. Loading is told by "
    "the driver's module for ours, by Triton's hooks for Triton"
)
_HOW_CPU = f"{_COMMON}. Our CUDA sources run on the CPU, compiled by g++; libraries are loaded"
_THEN = (
    "The calls after the first in the processes that found filled caches, each waited for; steady "
    "is the median of the second half, settled the number of the call from which five keep within "
    "a tenth of it; the pace is that of many calls enqueued"
)

STUDY = Study("cold_start", "Cold and warm start", CLAIM, run)
