"""An annotation stands at the kernel, not at the head of its file."""

from pathlib import Path

import pytest

from kernels.implementation import ROOT
from kernels.registry import implementations
from perftests.source_line import source_line

CUDA = """\
// f16 is spoken of here
#define RELU(T, suffix) UNARY_KERNELS(relu, suffix, T)
RELU(float, f32)
RELU(__half, f16)
RELU(__nv_bfloat16, bf16)
"""
TRITON = "import triton\n\n\n@triton.jit\ndef _relu(x):\n    pass\n"
TORCH = "import torch\n\n\ndef helper():\n    pass\n\n\ndef relu(x):\n    pass\n"


@pytest.mark.parametrize(
    ("name", "text", "dtype", "line"),
    [
        ("cuda.cu", CUDA, "float32", 3),
        ("cuda.cu", CUDA, "float16", 4),
        ("cuda.cu", CUDA, "bfloat16", 5),
        ("cuda.cu", CUDA, "float16 to float32", 3),
        ("cuda.cu", CUDA, "int8", 3),
        ("cuda.cu", "__global__ void relu() {}\n", "float32", 1),
        ("triton_impl.py", TRITON, "float32", 4),
        ("torch_impl.py", TORCH, "float32", 8),
        ("torch_impl.py", "x = 1\n", "float32", 1),
    ],
)
def test_the_line_is_that_of_the_kernel_of_a_dtype(
    tmp_path: Path, name: str, text: str, dtype: str, line: int
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert source_line(path, "relu", dtype) == line


def test_a_file_that_cannot_be_read_has_no_line(tmp_path: Path) -> None:
    assert source_line(tmp_path / "none.cu", "relu", "float32") is None
    (tmp_path / "bytes.cu").write_bytes(b"\xff\xfe\x00")
    assert source_line(tmp_path / "bytes.cu", "relu", "float32") is None


@pytest.mark.parametrize("kernel", ["relu", "add", "silu", "scale_relu", "bn_relu_add", "convert"])
def test_every_implementation_of_ours_has_a_line_of_its_own(kernel: str) -> None:
    for implementation in implementations(kernel):
        path = ROOT / implementation.source_file
        line = source_line(path, kernel, "float32")
        assert line is not None
        assert line > 1, path
