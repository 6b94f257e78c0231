"""Planted faults are caught: the checks see what they are there to see."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from kernels import host
from kernels.compare import compare
from kernels.fused_transform import PRESETS, Transform
from kernels.fused_transform.cuda_impl import SOURCE, fixed, plan_of
from kernels.fused_transform.layout import Rows
from kernels.fused_transform.tests.flavours import FLAVOURS, OURS, Flavour, pairs, problem
from kernels.fused_transform.variants import DEFAULTS, options_of
from kernels.implementation import ROOT, Implementation
from kernels.tests.problems import skip_unless_available

CPU = torch.device("cpu")
PIXELS = 333  # two tiles of a warp in fp32 and a cut one
WARP = DEFAULTS["warp"]
pytestmark = pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")


def planted(folder: Path, file: str, right: str, wrong: str) -> Path:
    """Return a copy of the source with a fault in one file."""
    target = folder / SOURCE.parent.name
    shutil.copytree(SOURCE.parent, target, ignore=shutil.ignore_patterns("tests", "*.py", "__*"))
    text = (target / file).read_text()
    assert text.count(right) == 1, f"{file} no longer has: {right}"
    (target / file).write_text(text.replace(right, wrong))
    return target / SOURCE.name


def options(flavour: Flavour, extra: Sequence[str] = ()) -> tuple[str, ...]:
    return (*options_of((WARP,), flavour.types), "-ftls-model=global-dynamic", *extra)


@pairs(implementations=OURS, flavours=FLAVOURS[:1])
def test_a_transposed_matrix_is_caught(implementation: Implementation, flavour: Flavour) -> None:
    skip_unless_available(implementation, CPU, flavour.source)
    given = PRESETS[flavour.transform]
    columns = tuple(zip(*given.matrix, strict=True))
    part = problem(flavour, CPU)
    wrong = implementation(part.x, transform=str(Transform(given.mean, given.std, columns)))
    assert compare(implementation(part.x), part.expected, part.bound).passed
    assert not compare(wrong, part.expected, part.bound).passed


def test_a_skipped_tail_is_caught(tmp_path: Path) -> None:
    flavour = FLAVOURS[0]
    right = "    if (!tile.pixels) return;\n"
    source = planted(tmp_path, "tile.cuh", right, "    return;\n")
    part = problem(flavour, CPU).first(PIXELS)
    x, out = part.x.clone(), torch.full_like(part.expected, float("nan"), dtype=flavour.target)
    addresses = x.data_ptr(), out.data_ptr()
    transform = PRESETS[flavour.transform]
    plan = plan_of(fixed(WARP), (WARP,), flavour.types, Rows(PIXELS), addresses, transform, -1)
    plan.function(plan.blocks, *addresses, plan.constants)
    assert compare(out, part.expected, part.bound).passed
    out.fill_(float("nan"))
    faulty = host.Library(source, options(flavour))
    layout = f"PP{len(plan.constants)}s"
    for name in ("fused_warp", "fused_warp_shifted"):
        kernel: Callable[..., None] = faulty.function(name, layout, WARP.threads)
        kernel(plan.blocks, *addresses, plan.constants)
    outcome = compare(out, part.expected, part.bound)
    assert not outcome.passed
    assert 0 < outcome.wrong <= 3 * 128 + 3 * 31


# Runs a kernel on memory that ends where the pixels end, in a process of its own.
_SCRIPT = """
import ctypes, json, sys
from pathlib import Path
from kernels.host import Library
given = json.loads(sys.argv[1])
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
x, y = (libc.malloc(given[name]) for name in ("x_bytes", "y_bytes"))
ctypes.memset(x, 0, given["x_bytes"])
constants = bytes.fromhex(given["constants"])
library = Library(Path(given["source"]), given["options"])
layout = "PP%ds" % len(constants)
library.function(given["kernel"], layout, given["threads"])(given["blocks"], x, y, constants)
print("ran to its end")
"""


def sanitized(source: Path, flavour: Flavour, kernel: str) -> subprocess.CompletedProcess[str]:
    """Run a kernel under AddressSanitizer and UndefinedBehaviorSanitizer."""
    types, transform = flavour.types, PRESETS[flavour.transform]
    plan = plan_of(fixed(WARP), (WARP,), types, Rows(PIXELS), (0, 0), transform, -1)
    given = {
        "source": str(source),
        "options": options(flavour, host.SANITIZE),
        "kernel": kernel,
        "threads": WARP.threads,
        "blocks": plan.blocks,
        "constants": plan.constants.hex(),
        "x_bytes": PIXELS * types.in_pixel,
        "y_bytes": PIXELS * types.out_pixel,
    }
    path = host.compiler()
    assert path is not None
    found = subprocess.run(
        [path, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    environment = {
        **os.environ,
        "LD_PRELOAD": found.stdout.strip(),
        # Fibers switch stacks, which the detection of use after return does not follow.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(given)],
        capture_output=True, text=True, check=False, env=environment, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("kernel", ["fused_warp", "fused_warp_shifted"])
def test_the_sanitizers_find_nothing_in_the_kernels(kernel: str) -> None:
    done = sanitized(SOURCE, FLAVOURS[0], kernel)
    assert (done.returncode, done.stdout) == (0, "ran to its end\n"), done.stderr[-3000:]


def test_vectors_that_run_past_the_end_are_caught(tmp_path: Path) -> None:
    right = "tile.whole = tile.pixels == PIXELS && tile.begin == 0 && tile.end == vectors;"
    source = planted(tmp_path, "tile.cuh", right, "tile.whole = tile.pixels > 0;")
    done = sanitized(source, FLAVOURS[0], "fused_warp")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


def test_vectors_at_an_odd_address_are_caught(tmp_path: Path) -> None:
    right = "    tile.x = x - tile.shift;\n"
    source = planted(tmp_path, "tile.cuh", right, right.replace("tile.shift", "tile.shift + 4"))
    done = sanitized(source, FLAVOURS[0], "fused_warp")
    assert done.returncode != 0
    assert "misaligned address" in done.stderr
