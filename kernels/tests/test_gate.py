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
HALF_MAX = """
struct Relu { __device__ TWO operator()(TWO v) const { return __hmax2(ZERO, v); } };
UNARY_KERNEL(planted, ONE, ONE, 1, false, (), Relu{})
"""
FP16_MAX = "#define ONE __half\n#define TWO __half2\n#define ZERO __float2half2_rn(0.0f)" + HALF_MAX
BF16_MAX = (
    "#define ONE __nv_bfloat16\n#define TWO __nv_bfloat162\n#define ZERO __float2bfloat162_rn(0.0f)"
    + HALF_MAX
)
FLOATS = """
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    const i64 i = (static_cast<i64>(blockIdx.x) * 256 + threadIdx.x) * 4;
    for (int k = 0; k < 4; ++k) if (i + k < n) y[i + k] = x[i + k] <= 0.0f ? 0.0f : x[i + k];
}
"""
PAIRS = """
KERNEL(256, planted, (const float2* x, float2* y, i64 n)) {
    const i64 i = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x;
    if (i < n) y[i] = make_float2(x[i].x + 1.0f, x[i].y + 1.0f);
}
"""
SPILLS = GOOD.replace("float, float, 1", "float, float, 8")  # eight vectors in 32 registers
STACK = """
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    float v[64];
    for (int k = 0; k < 64; ++k) v[k] = x[k * 256 + threadIdx.x];
    for (int k = 0; k < 64; ++k) y[k * 256 + threadIdx.x] = v[static_cast<int>(x[k]) & 63];
}
"""
UNBOUND = """
KERNEL(128, planted, (const uint4* x, uint4* y, i64 n)) {
    uint4 v[9];
    for (int k = 0; k < 9; ++k) v[k] = x[k * 128 + threadIdx.x];
    for (int k = 0; k < 9; ++k) store_global(y + k * 128 + threadIdx.x, v[8 - k]);
}
"""
# The kernel finds out by itself whether its tile is whole, in 64 bits, as it once did.
COUNTS = """
struct Relu { __device__ float operator()(float v) const { return v <= 0.0f ? 0.0f : v; } };
KERNEL(BLOCK_THREADS<1>, planted, (const float* x, float* y, i64 n, u32 shift)) {
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
@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        pytest.param(FMAXF, (), "NaN is dropped by FMNMX", id="fmaxf"),
        pytest.param(TERNARY, (), "NaN is dropped by FMNMX", id="ternary"),
        pytest.param(FP16_MAX, (), "NaN is dropped by V?HMNMX2", id="fp16-max"),
        pytest.param(BF16_MAX, (), "NaN is dropped by V?HMNMX2", id="bf16-max"),
        pytest.param(FLOATS, (), r"no 128-bit load, only \[32\].*no 128-bit store", id="32-bit"),
        pytest.param(PAIRS, (), r"no 128-bit load, only \[64\].*no 128-bit store", id="64-bit"),
        pytest.param(SPILLS, (), "local memory: [1-9][0-9]* accesses", id="spill"),
        pytest.param(STACK, (), "local memory: .* [1-9][0-9]* B of stack", id="stack"),
        pytest.param(UNBOUND, (), "[34][0-9] registers a thread, more than 32", id="registers"),
        pytest.param(SCALE, ("-ftz=true",), "subnormals are flushed by F", id="flushing"),
    ],
)
def test_a_planted_fault_is_caught(
    tmp_path: Path, arch: str, text: str, options: tuple[str, ...], words: str
) -> None:
    broken = " ".join(violations(planted(tmp_path, text, *options, arch=arch), (MAIN,)))
    assert re.search(words, broken)


def test_vectors_beside_too_many_narrow_accesses_are_caught(tmp_path: Path) -> None:
    found = replace(planted(tmp_path, GOOD), loads={128: 1, 32: 5})
    assert "6 accesses narrower" in violations(found, (MAIN,))[0]


def test_arithmetic_that_flushes_nothing_breaks_nothing(tmp_path: Path) -> None:
    assert violations(planted(tmp_path, SCALE), (MAIN,)) == []


def test_one_register_too_many_is_caught(tmp_path: Path) -> None:
    found = planted(tmp_path, GOOD)
    assert violations(replace(found, registers=32), (MAIN,)) == []
    assert violations(replace(found, registers=33), (MAIN,)) == [
        "planted: 33 registers a thread, more than 32"
    ]


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


def test_a_kernel_without_a_gate_is_shown_and_told_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = {name: gate for name, gate in gates().items() if name != "relu"}
    monkeypatch.setattr(command, "gates", lambda: rest)
    assert command.main(["inspect", "relu", "--arch", "sm_90"]) == 1
    shown = capsys.readouterr().out
    assert "relu_x1_f32" in shown
    assert "no rule says what it must be" in shown
    assert "write GATE into kernels/relu/gate.py" in shown


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
