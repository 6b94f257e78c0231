"""What compute-sanitizer looks at on a GPU covers every kernel of ours, and finds planted faults."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

from kernels import exact, registry, sanitize_gpu
from kernels.__main__ import main
from kernels.build import compile_cubin
from kernels.cuda import CudaImplementation
from kernels.gate import gates
from kernels.sass import facts

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU here")
CPU = torch.device("cpu")
CLEAN = 'print(\'{"launches": 3, "wrong": []}\')'


def run_instead(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Run a Python program wherever a process of launches or of a planted fault would run."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sanitize_gpu, "command", lambda *_: [sys.executable, "-c", program])


def test_every_implementation_dtype_and_case_of_ours_is_launched() -> None:
    listed = {
        (implementation.kernel, implementation.name, case.dtype)
        for implementation, cases in exact.groups(registry.kernels())
        for case in cases
    }
    ours = {
        (kernel, i.name, str(dtype).removeprefix("torch."))
        for kernel in registry.kernels()
        for i in registry.implementations(kernel)
        if isinstance(i, CudaImplementation)
        for dtype in i.dtypes
    }
    assert listed == ours
    shapes = {case.shape for _, cases in exact.groups(["relu"]) for case in cases}
    tier = registry.definition("relu").cases("cuda", "correctness")
    assert shapes >= {case.shape for case in tier}


def test_parts_are_all_the_work_once() -> None:
    given = exact.groups(registry.kernels())
    parts = exact.shard(given, 6)
    assert sorted(map(id, (g for part in parts for g in part))) == sorted(map(id, given))
    work = [sum(map(exact.launches_of, part)) for part in parts]
    assert max(work) < 1.5 * min(work)


def test_all_alignments_are_tried_where_a_vector_fits() -> None:
    case = registry.definition("relu").cases("cuda", "correctness")[4]
    assert case.shape == (1027,)
    half = torch.float16
    assert set(exact.pairs(case, half, half)) == {(i, o) for i in range(8) for o in range(8)}


def test_launches_are_right_and_faults_in_results_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    relu = registry.get("relu", "cuda_scalar")
    if relu.unavailable(CPU, torch.float32):
        pytest.skip("g++ is not installed")
    given = [g for g in exact.groups(["relu"]) if g[0] is relu][:1]
    found = exact.run(given, CPU)
    assert (found.launches > 80, found.wrong) == (True, [])
    monkeypatch.setattr(type(relu), "_run", lambda *_: None)
    monkeypatch.setattr(type(relu), "__call__", lambda _self, *_x, out: out)
    lost = exact.run(given, CPU)
    assert lost.wrong
    assert "relu/cuda_scalar relu float32 [1]: in+[0] out+0" in lost.wrong[0]


def test_a_tensor_ends_where_its_allocation_ends() -> None:
    buffers = exact.Exact(CPU)
    value = torch.arange(5, dtype=torch.float16)
    placed = buffers.place("x", 3, torch.float16, (5,), value)
    assert torch.equal(placed, value)
    assert placed.data_ptr() % 16 == 6
    storage = placed.untyped_storage()
    assert placed.data_ptr() + placed.nbytes == storage.data_ptr() + storage.nbytes()
    assert storage.nbytes() == 16
    assert buffers.lead_intact("x", 3, placed)
    torch.as_strided(placed, (1,), (1,), 2).zero_()
    assert not buffers.lead_intact("x", 3, placed)


def test_only_kernels_that_share_memory_are_looked_at_for_races() -> None:
    assert sanitize_gpu.kernels_for("racecheck", []) == ["fused_transform"]
    assert len(sanitize_gpu.kernels_for("memcheck", [])) == len(registry.kernels())
    for kernel in set(registry.kernels()) - {"fused_transform"}:
        found = facts(compile_cubin(gates()[kernel].source, "sm_90").code)
        assert not any(each.shared_bytes for each in found.values())


def test_without_a_gpu_or_the_tool_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["sanitize-gpu", "memcheck"]) == 2
    assert capsys.readouterr().err == (
        "no NVIDIA GPU here: compute-sanitizer has nothing to look at\n"
    )
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert main(["sanitize-gpu", "racecheck", "--jobs", "1"]) == 2
    assert "compute-sanitizer is neither on PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ('print(\'{"launches": 3, "wrong": []}\')', "memcheck: 3 launches of relu: clean"),
        ('print(\'{"launches": 3, "wrong": ["off by one"]}\')', "off by one"),
        ("print('========= Invalid'); exit(9)", "========= Invalid"),
        ("pass", "exit 0"),
    ],
)
def test_what_a_part_says_is_judged(
    body: str, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    fault = "print('Invalid __global__ read of size 16 bytes; misaligned'); exit(9)"

    def command(_tool: str, what: str, *_: str) -> list[str]:
        return [sys.executable, "-c", body if what == "launch" else fault]

    monkeypatch.setattr(sanitize_gpu, "command", command)
    status = main(["sanitize-gpu", "memcheck", "--only", "relu", "--jobs", "1"])
    told = capsys.readouterr().out
    assert verdict in told
    assert status == (0 if verdict.endswith("clean") else 1)
    assert told.count("planted fault") == told.count("found (") == 2


def test_a_planted_fault_that_the_tool_misses_is_no_clean_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_instead(monkeypatch, CLEAN)
    assert main(["sanitize-gpu", "racecheck", "--jobs", "1"]) == 1
    assert "planted fault 1: NOT FOUND" in capsys.readouterr().out


def test_no_part_is_without_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_instead(monkeypatch, CLEAN)
    assert main(["sanitize-gpu", "none", "--only", "scale_relu", "--jobs", "6"]) == 0
    told = capsys.readouterr().out
    assert len(exact.groups(["scale_relu"])) == 3
    assert "part 3 of 3: 3 launches, clean" in told
    assert "none: 9 launches of scale_relu: clean" in told


def test_a_run_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_instead(monkeypatch, "import time; time.sleep(60)")
    assert main(["sanitize-gpu", "none", "--jobs", "1", "--limit", "0.2"]) == 2
    assert "did not end within 0 s" in capsys.readouterr().err


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_the_tools_find_planted_faults_and_nothing_in_ours(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        sanitize_gpu.find_tool()
    except sanitize_gpu.CannotRunError as error:
        pytest.skip(str(error))
    only = "fused_transform" if tool == "racecheck" else "scale_relu"
    assert main(["sanitize-gpu", tool, "--only", only]) == 0, capsys.readouterr().out
