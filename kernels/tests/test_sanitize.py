"""Our sources are clean under the sanitizers, and the sanitizers catch the two published bugs."""

from pathlib import Path
from typing import Any

import pytest

from kernels import sanitize
from kernels.planted import ODD_ADDRESS, ONE_BEFORE, PAST_THE_END
from kernels.sanitize import Launches, run

FOLDER = Path(sanitize.__file__).parent
TYPES = (("f32", 4), ("f16", 2), ("bf16", 2))
pytestmark = pytest.mark.skipif(sanitize.runtimes() is None, reason="g++ has no sanitizers here")


def vector(kernel: str, inputs: int = 1, **options: Any) -> list[Launches]:
    """Return launches of a vector kernel, every shape of it, for each element type."""
    shapes = [(1,), (2,), (4,)] if kernel in {"relu", "scale_relu"} else [(1,), (2,)]
    if inputs == 2:
        shapes = [(1,), (2,)] if kernel == "add" else [(1,)]
    return [
        Launches(
            name=f"{kernel}_{{shifted}}x{{loads}}_{suffix}",
            inputs=inputs,
            sizes=(size, size),
            loads=loads,
            shifted=(min(loads[0], 1 if inputs == 2 else 2),),
            lengths=sanitize.LENGTHS if loads == (1,) else (67, 1025, 8195),
            step=1 if loads == (1,) else 3,
            **options,
        )
        for suffix, size in TYPES
        for loads in shapes
    ]


def scalar(kernel: str) -> list[Launches]:
    return [Launches(f"{kernel}_scalar_{s}", sizes=(size, size), step=8) for s, size in TYPES]


def pack(name: str, suffix: str, size: int, elements: int) -> Launches:
    step = VECTOR // size if elements != 3 else 1
    return Launches(
        f"add_{name}_{suffix}", 2, (size, size), per_thread=elements, step=step, lengths=(1, 7, 257)
    )


VECTOR = 16
PACKS = [
    *(pack(f"float{k}", "f32", 4, k) for k in (1, 2, 3, 4)),
    *(pack(f"half{k or ''}", s, 2, k or 1) for s in ("f16", "bf16") for k in (0, 2, 8)),
]
CONVERSIONS = [
    Launches(f"convert_{rule}{{shifted}}x{{loads}}_{pair}", sizes=sizes, loads=(loads,), shifted=(2,), step=2)
    for rule, pair, sizes in (
        ("rn_", "f32_f16", (4, 2)), ("rd_", "f32_bf16", (4, 2)), ("", "f16_f32", (2, 4)),
        ("", "bf16_f32", (2, 4)),
    )
    for loads in (2, 4)
]  # fmt: skip
# Channels a multiple of four and not, as NHWC (planes of 1) and NCHW (planes of 21).
BATCH_NORMS = [
    problem
    for channels, plane in ((8, 1), (5, 1), (5, 21))
    for problem in vector(
        "bn_relu_add",
        inputs=2,
        tables=(channels, channels),
        layout="PPII",
        values=(channels, plane),
        grow=channels * plane,
    )
]
PROBLEMS = {
    "relu": [*vector("relu"), *scalar("relu")],
    "add": [*vector("add", inputs=2), *PACKS],
    "silu": vector("silu"),
    "scale_relu": vector("scale_relu", layout="f", values=(0.5,)),
    "convert": CONVERSIONS,
    "bn_relu_add": BATCH_NORMS,
}


@pytest.mark.parametrize("kernel", PROBLEMS)
def test_a_source_is_clean_under_the_sanitizers(kernel: str) -> None:
    done = run(FOLDER / kernel / "cuda.cu", PROBLEMS[kernel])
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 200 if kernel != "convert" else int(done.stdout) > 100


def planted(folder: Path, text: str, n: int) -> str:
    source = folder / "planted" / "cuda.cu"
    source.parent.mkdir()
    source.write_text(text)
    done = run(source, [Launches("planted", lengths=(n,), step=4)])
    assert done.returncode != 0
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_float4_loop_past_the_end_is_caught(folder: Path) -> None:
    assert "AddressSanitizer: heap-buffer-overflow" in planted(folder, PAST_THE_END, 1027)


def test_a_float4_at_an_odd_address_is_caught(folder: Path) -> None:
    found = planted(folder, ODD_ADDRESS, 30)
    assert "misaligned address" in found
    assert "float4" in found


def test_a_read_before_the_start_is_caught(folder: Path) -> None:
    assert "AddressSanitizer: heap-buffer-overflow" in planted(folder, ONE_BEFORE, 8)


def test_a_loop_past_the_end_is_harmless_where_four_divide_the_length(folder: Path) -> None:
    source = folder / "planted" / "cuda.cu"
    source.parent.mkdir()
    source.write_text(PAST_THE_END)
    assert run(source, [Launches("planted", lengths=(1024,), step=4)]).returncode == 0
