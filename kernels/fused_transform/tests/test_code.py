"""Static facts of the machine code, with no GPU: wide accesses, no spills, one rounding a step."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from kernels import build, toolkit
from kernels.fused_transform.cuda_impl import SOURCE
from kernels.fused_transform.tests.flavours import FLAVOURS, Flavour
from kernels.fused_transform.variants import DEFAULTS, options_of, vector_variants
from kernels.gate import Rule, violations
from kernels.sass import facts

ARCHS = ("sm_80", "sm_90", "sm_100")
EVERY = pytest.mark.parametrize(
    ("flavour", "arch"),
    [pytest.param(f, a, id=f"{f.name}-{a}") for f in FLAVOURS for a in ARCHS],
)


@cache
def _have() -> str | None:
    try:
        build.nvrtc_version()
        toolkit.binary("cuobjdump")
    except (build.BuildError, FileNotFoundError) as error:
        return str(error)
    return None


def listing(path: Path, cubin: build.Cubin) -> dict[str, list[str]]:
    """Return the instructions of each function of a CUBIN."""
    path.write_bytes(cubin.code)
    command = [str(toolkit.binary("cuobjdump")), "-sass", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    parts = re.split(r"Function : (\w+)", text)[1:]
    return {
        function: re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?);", body)
        for function, body in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def compiled(flavour: Flavour, arch: str, vector: bool = False) -> build.Cubin:
    reason = _have()
    if reason:
        pytest.skip(reason)
    variants = vector_variants(flavour.types) if vector else tuple(DEFAULTS.values())
    return build.compile_cubin(SOURCE, arch, options_of(variants, flavour.types))


def until_the_last_exit(instructions: list[str]) -> list[str]:
    """Return what runs: after it stand the copies for a warp whose lanes have parted."""
    last = max(i for i, text in enumerate(instructions) if "EXIT" in text)
    return instructions[: last + 1]


def count(pattern: str, instructions: list[str]) -> int:
    return sum(bool(re.search(pattern, text)) for text in instructions)


def expect_tile(body: list[str], load: str) -> None:
    body = until_the_last_exit(body)
    assert count(load, body) >= 1
    assert count(r"\bSTG\.E\.128", body) >= 3
    assert count(r"\b(LDL|STL)", body) == 0, "spills"
    # 9 coefficients a pixel, each a multiply-add.
    assert count(r"\bFFMA\b", body) >= 9 * 4


@EVERY
@pytest.mark.parametrize("suffix", ["", "_shifted"])
def test_tiles_move_by_whole_vectors_and_nothing_spills(
    flavour: Flavour, arch: str, suffix: str, tmp_path: Path
) -> None:
    code = listing(tmp_path / "vector.cubin", compiled(flavour, arch, vector=True))
    expect_tile(code[f"fused_warp{suffix}"], r"\bLDG\.E\.128")
    code = listing(tmp_path / "code.cubin", compiled(flavour, arch))
    expect_tile(code[f"fused_pipeline{suffix}"], r"\bLDGSTS\.E\.\S*128")


@EVERY
def test_the_scalar_kernel_moves_elements_within_32_registers(flavour: Flavour, arch: str) -> None:
    widths = [8 * t.itemsize for t in (flavour.source, flavour.target)]
    rule = Rule("", load_bits=widths[0], store_bits=widths[1], narrower=0)
    assert violations(facts(compiled(flavour, arch).code)["fused_scalar"], (rule,)) == []


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_bulk_copies_go_through_the_copy_engine(arch: str, tmp_path: Path) -> None:
    code = listing(tmp_path / "code.cubin", compiled(FLAVOURS[0], arch))
    for name in ("fused_bulk", "fused_bulk_shifted"):
        assert count(r"\bUBLKCP", code[name]) == 2
    assert "fused_bulk" not in listing(tmp_path / "old.cubin", compiled(FLAVOURS[0], "sm_80"))
