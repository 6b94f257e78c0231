"""Where in its source file a kernel stands, read from the text: for annotations."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "uint8": "u8"}
_MADE = r"^[A-Z][A-Z0-9_]*\(.*[,_ ]{suffix}\b"
"""A line that makes the kernels of a dtype from a macro, such as `RELU(float, f32)`."""
_OF_CUDA = (r"^[A-Z][A-Z0-9_]*KERNELS?\(", r"^[A-Z][A-Z0-9_]*\(", r"__global__")
_OF_PYTHON = (r"^@triton\.jit", r"^def {kernel}\b", r"^def [a-z]", r"^class ")


def source_line(path: Path, kernel: str, dtype: str) -> int | None:
    """Return the line, from 1, at which a kernel of a dtype is made; None for an unreadable file.

    `dtype` is that of the input, or of input and output with anything between. A file in which
    nothing is recognised gives its first line.
    """
    lines = _lines(path)
    if lines is None:
        return None
    if path.suffix == ".py":
        patterns = tuple(p.format(kernel=re.escape(kernel)) for p in _OF_PYTHON)
    else:
        names = [s for name, s in _SUFFIXES.items() if re.search(rf"(?<![a-z]){name}", dtype)]
        patterns = (*(_MADE.format(suffix=name) for name in names), *_OF_CUDA)
    for pattern in patterns:
        for number, line in enumerate(lines, start=1):
            if re.search(pattern, line):
                return number
    return 1


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...] | None:
    try:
        return tuple(path.read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return None
