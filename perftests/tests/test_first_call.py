"""The first call in the suite's records: seconds of each part, or why there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels.cases import Case
from kernels.cuda import CudaScalar
from kernels.first_call import AT_HAND, CACHED, LAUNCHED
from kernels.registry import definition, get, implementations, kernels
from perftests.harness.chain import measure
from perftests.harness.workload import FIRST_CALL
from perftests.suite import workload
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from kernels.implementation import Implementation
    from perftests.harness.session import Session

CPU = torch.device("cpu")
SOURCE = r"""
#include "prelude.cuh"
KERNEL(256, relu_scalar_f32, (const float* x, float* y, i64 n)) {
    const i64 i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] <= 0 ? 0 : x[i];
}
"""
DEVICES = [pytest.param("cpu", id="cpu"), pytest.param("cuda", marks=pytest.mark.gpu, id="cuda")]


def first_case(implementation: Implementation, device: torch.device) -> Case:
    """Return the first case of the quick tier that an implementation takes."""
    found = definition(implementation.kernel).cases(device.type, "quick")
    return next(case for case in found if case.torch_dtype in implementation.dtypes)


def test_what_gxx_compiles_is_told_in_the_suites_record(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    check_session: Session,
    validate: Callable[[Any], Any],
) -> None:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path / "cache"))
    known = get("relu", "cuda_scalar")
    assert isinstance(known, CudaScalar)
    implementation = CudaScalar(known.definition, known.source)
    implementation.source = tmp_path / "cuda.cu"
    implementation.source.write_text(SOURCE)
    outcome = measure(workload(implementation, first_case(known, CPU), CPU), check_session)
    parts = outcome.result["first_call"]
    assert outcome.broken is None
    assert parts["compile_s"] > parts["load_s"] > 0
    assert 0 < parts["launch_s"] < parts["compile_s"]
    assert not any(name.startswith("first_call") for name in outcome.result["reasons"])
    validate(outcome.envelope)
    other = replace(first_case(known, CPU), shape=(67,))
    told = measure(workload(implementation, other, CPU), check_session).result
    assert set(told["first_call"].values()) == {None}
    assert [told["reasons"][f"first_call.{name}"] for name in FIRST_CALL] == [
        AT_HAND, AT_HAND, LAUNCHED,
    ]  # fmt: skip


def test_a_case_that_is_compiled_anew_says_so_in_its_record(
    check_session: Session, validate: Callable[[Any], Any]
) -> None:
    """A planted recompilation: torch.compile compiles for each shape, on a CPU too."""
    torch._dynamo.reset()
    known = get("relu", "torch_compile")

    def told(n: int, mode: str = "cold") -> tuple[float | None, float | None, str]:
        case = workload(known, Case("relu", "float32", (n,)), CPU)
        outcome = measure(case, check_session, mode=mode)
        validate(outcome.envelope)
        parts, reasons = outcome.result["first_call"], outcome.result["reasons"]
        return parts["compile_s"], parts["launch_s"], reasons.get("first_call.compile_s", "")

    for n in (67, 131):
        compile_s, launch_s, reason = told(n)
        assert launch_s is not None
        assert (compile_s is None) == reason.startswith(CACHED)  # as the cache had it or not
    for n, mode in ((67, "hot"), (131, "cold")):
        assert told(n, mode) == (None, None, AT_HAND)


@pytest.mark.parametrize("device_name", DEVICES)
@pytest.mark.parametrize("kernel", kernels())
def test_each_part_is_told_or_has_its_reason(
    kernel: str, device_name: str, check_session: Session, request: pytest.FixtureRequest
) -> None:
    if device_name == "cuda":
        request.getfixturevalue("gpu")
    device = torch.device(device_name)
    for implementation in implementations(kernel):
        case = first_case(implementation, device)
        if implementation.unavailable(device, case.torch_dtype):
            continue
        result = measure(workload(implementation, case, device), check_session).result
        told, reasons = result["first_call"], result["reasons"]
        for name in FIRST_CALL:
            reason = reasons.get(f"first_call.{name}")
            assert (told[name] is None) == (reason is not None)
            assert "does not split" not in (reason or "")
        assert told["launch_s"] or reasons["first_call.launch_s"] == LAUNCHED


CASES = """
import json, sys, torch
from kernels.cases import Case
from kernels.registry import get
from perftests.harness.chain import measure
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.suite import workload

session = Session(Settings(timing=False, lock_seconds=30))
for case in ((4096, 0, "float32"), (8192, 0, "float32"), (4099, 0, "float32"), (4096, 1, "float32")):
    n, offset, dtype = case
    offsets = {"input_offsets": (offset,), "output_offset": offset}
    problem = workload(get("relu", sys.argv[1]), Case("relu", dtype, (n,), **offsets), torch.device("cuda"))
    outcome = measure(problem, session)
    result = outcome.result
    print(json.dumps([str(outcome.broken), result["first_call"], result["reasons"]]))
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("implementation", "compiled"),
    [
        ("triton", [True, False, True, True]),  # by what 16 divides: lengths and addresses
        ("torch_compile", [True, True, True, False]),  # by length
    ],
)
@pytest.mark.usefixtures("gpu")
def test_on_a_gpu_each_case_tells_what_was_compiled_for_it(
    implementation: str, compiled: list[bool], tmp_path: Path
) -> None:
    """In a process of its own: this one may have launched any of them."""
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    done = subprocess.run(
        [sys.executable, "-c", CASES, implementation],
        env={**os.environ, **{name: str(tmp_path / name) for name in names}},
        capture_output=True,
        text=True,
        check=True,
    )
    for new, line in zip(compiled, done.stdout.splitlines()[-len(compiled) :], strict=True):
        broken, parts, reasons = json.loads(line)
        assert broken == "None"
        if new:
            assert parts["compile_s"] > 0.01
            assert parts["launch_s"] > 0
        else:
            assert reasons["first_call.compile_s"] == reasons["first_call.load_s"] == AT_HAND
            assert reasons["first_call.launch_s"] == LAUNCHED


def test_a_part_may_be_told_in_words_or_not_at_all() -> None:
    def found(call: Callable[[], object]) -> Mapping[str, float | str]:
        call()
        return {"compile_s": CACHED, "launch_s": 0.25}

    calls: list[int] = []
    seconds, reasons = relu_workload(first_call=found).split(lambda: calls.append(1))
    assert calls == [1]
    assert seconds == {"compile_s": None, "load_s": None, "launch_s": 0.25}
    assert reasons["compile_s"] == CACHED
    assert reasons["load_s"] == "the workload does not split its first call"
