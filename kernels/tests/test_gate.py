"""The static gate: what would run is what was meant; planted faults are caught. No GPU needed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernels import __main__ as command
from kernels import build
from kernels.gate import ARCHITECTURES, Gate, Rule, check, gates, violations
from kernels.registry import kernels
from kernels.sass import Facts, facts, width

MAIN = Rule("", load_bits=128, store_bits=128, narrower=2)
PROLOGUE = '#include "elementwise.cuh"\n'
GOOD = """
struct Relu { __device__ float operator()(float v) const { return v <= 0.0f ? 0.0f : v; } };
UNARY_KERNEL(planted, float, float, 1, false, (), Relu{})
"""
FMAXF = GOOD.replace("v <= 0.0f ? 0.0f : v", "fmaxf(v, 0.0f)")
TERNARY = GOOD.replace("v <= 0.0f ? 0.0f : v", "v > 0.0f ? v : 0.0f")
FLOATS = """
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    const i64 i = (static_cast<i64>(blockIdx.x) * 256 + threadIdx.x) * 4;
    for (int k = 0; k < 4; ++k) if (i + k < n) y[i + k] = x[i + k] <= 0.0f ? 0.0f : x[i + k];
}
"""
SPILLS = """
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    float v[64];
    for (int k = 0; k < 64; ++k) v[k] = x[k * 256 + threadIdx.x];
    for (int k = 0; k < 64; ++k) y[k * 256 + threadIdx.x] = v[static_cast<int>(x[k]) & 63];
}
"""
# The kernel finds out by itself whether its tile is whole, in 64 bits, as it once did.
COUNTS = """
struct Relu { __device__ float operator()(float v) const { return v <= 0.0f ? 0.0f : v; } };
KERNEL(THREADS, planted, (const float* x, float* y, i64 n, u32 shift)) {
    const i64 base = static_cast<i64>(blockIdx.x) * 512 - shift;
    const u32 edges = base < 0 || base + 512 > n ? gridDim.x : 0;
    elementwise<1, false>(Relu{}, Inputs<float, 1>{{x}}, y, n, shift, edges);
}
"""
# Copy kernels of one and four vectors a thread have 17 and 21; a second input has an address more.
BEFORE_LOAD = 22
SCALE = """
struct Scale { float s; __device__ float operator()(float v) const { return v * s + 1.0f; } };
UNARY_KERNEL(planted, float, float, 1, false, (, float s), Scale{s})
"""


def planted(folder: Path, text: str, *options: str, arch: str = "sm_90") -> Facts:
    source = folder / "planted" / "cuda.cu"
    source.parent.mkdir(exist_ok=True)
    source.write_text(PROLOGUE + text)
    return facts(build.compile_cubin(source, arch, options).code)["planted"]


@pytest.fixture(autouse=True)
def own_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted sources go to a cache of their own."""
    if "tmp_path" in request.fixturenames:
        monkeypatch.setenv("BANDWATCH_CACHE", str(request.getfixturevalue("tmp_path") / "cache"))


@pytest.mark.parametrize("kernel", ["relu", "add", "silu", "scale_relu", "convert"])
def test_a_whole_tile_is_loaded_after_few_instructions(kernel: str) -> None:
    code = build.compile_cubin(gates()[kernel].source, "sm_90").code
    aligned = {
        n: f for n, f in facts(code).items() if re.search(r"_x[124]_", n) and "shifted" not in n
    }
    assert aligned
    assert {n: f.before_load for n, f in aligned.items() if f.before_load > BEFORE_LOAD} == {}


def test_counting_the_tiles_in_the_kernel_is_seen(tmp_path: Path) -> None:
    assert planted(tmp_path, GOOD).before_load <= BEFORE_LOAD
    assert planted(tmp_path, COUNTS).before_load > BEFORE_LOAD


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kernel", sorted(gates()))
def test_every_kernel_passes_its_gate(kernel: str, arch: str) -> None:
    assert check(gates()[kernel], arch) == []


def test_every_kernel_has_a_gate() -> None:
    assert set(gates()) >= set(kernels())


def test_a_good_kernel_breaks_nothing(tmp_path: Path) -> None:
    found = planted(tmp_path, GOOD)
    assert violations(found, (MAIN,)) == []
    assert found.loads[128] >= 1
    assert found.stores[128] >= 1
    assert 0 < found.registers <= 32


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("text", [FMAXF, TERNARY], ids=["fmaxf", "ternary"])
def test_a_maximum_that_drops_nan_is_caught(tmp_path: Path, text: str, arch: str) -> None:
    broken = violations(planted(tmp_path, text, arch=arch), (MAIN,))
    assert len(broken) == 1
    assert "NaN is dropped by FMNMX" in broken[0]


def test_a_lost_vector_access_is_caught(tmp_path: Path) -> None:
    broken = " ".join(violations(planted(tmp_path, FLOATS), (MAIN,)))
    assert "no 128-bit load, only [32] bits" in broken
    assert "no 128-bit store, only [32] bits" in broken


def test_vectors_beside_too_many_narrow_accesses_are_caught(tmp_path: Path) -> None:
    found = replace(planted(tmp_path, GOOD), loads={128: 1, 32: 5})
    assert "6 accesses narrower" in violations(found, (MAIN,))[0]


def test_flushing_of_subnormals_is_caught(tmp_path: Path) -> None:
    assert violations(planted(tmp_path, SCALE), (MAIN,)) == []
    broken = violations(planted(tmp_path, SCALE, "-ftz=true"), (MAIN,))
    assert "subnormals are flushed" in broken[0]


def test_local_memory_is_caught(tmp_path: Path) -> None:
    broken = " ".join(violations(planted(tmp_path, SPILLS), (Rule(""),)))
    assert "local memory" in broken


def test_too_many_registers_are_caught(tmp_path: Path) -> None:
    found = planted(tmp_path, GOOD)
    assert violations(found, (replace(MAIN, registers=8),))[0].endswith("more than 8")


def test_a_function_that_no_rule_names_is_caught(tmp_path: Path) -> None:
    found = planted(tmp_path, GOOD)
    assert violations(found, (Rule("other"),)) == ["planted: no rule says what it must be"]


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [
        ("LDG.E.128.CONSTANT", 128), ("LDG.E", 32), ("LDG.E.U16.CONSTANT", 16), ("STG.E.EF.64", 64),
        ("LDG.E.S8", 8), ("STG.E.128.STRONG.SM", 128), ("LDG.E.ENL2.256", 256), ("LDG.E.EF.128", 128),
    ],
)  # fmt: skip
def test_width_of_an_access(opcode: str, bits: int) -> None:
    assert width(opcode) == bits


def test_the_facts_are_printed_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["inspect", "relu", "--arch", "sm_90"]) == 0
    out = capsys.readouterr().out
    line = next(text for text in out.splitlines() if text.startswith("relu_x1_f32"))
    assert "128x" in line
    assert "keeps" in line
    assert line.endswith("ok")


def test_an_unknown_architecture_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["inspect", "relu", "--arch", "sm_1"]) == 2
    assert "cannot compile" in capsys.readouterr().err


def test_the_command_fails_when_the_gate_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = Gate("relu", (replace(MAIN, registers=4),))
    monkeypatch.setattr(command, "gates", lambda: {"relu": strict})
    assert command.main(["inspect", "relu"]) == 1
    assert "registers a thread, more than 4" in capsys.readouterr().out


def test_kernels_are_compiled_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "gates", lambda: {"relu": Gate("relu", (MAIN,))})
    assert command.main(["build", "--arch", "sm_90", "--jobs", "1"]) == 0
    assert "1 of 1 compiled" in capsys.readouterr().out
    assert [path.name[:10] for path in (tmp_path / "cache").glob("*.cubin")] == ["relu-sm_90"]
    assert command.main(["build", "--arch", "sm_1"]) == 2
    assert "cannot compile" in capsys.readouterr().out
