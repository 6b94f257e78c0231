"""Planted faults are caught: the checks see what they are there to see."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import pytest
import torch

from kernels import host, sanitize
from kernels.compare import compare
from kernels.fused_transform import PRESETS, Transform
from kernels.fused_transform.cuda_impl import SOURCE, fixed, plan_of
from kernels.fused_transform.layout import Rows
from kernels.fused_transform.tests.flavours import FLAVOURS, OURS, Flavour, pairs, problem
from kernels.fused_transform.variants import DEFAULTS, Variant, options_of
from kernels.implementation import ROOT, Implementation
from kernels.tests.problems import skip_unless_available

CPU = torch.device("cpu")
PIXELS = 333  # two tiles of a warp in fp32 and a cut one
WARP = DEFAULTS["warp"]
pytestmark = pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")
SANITIZERS = pytest.mark.skipif(sanitize.runtimes() is None, reason="g++ has no sanitizers here")


def planted(folder: Path, file: str, right: str, wrong: str) -> Path:
    """Return a copy of the source with a fault in one file."""
    target = folder / SOURCE.parent.name
    shutil.copytree(SOURCE.parent, target, ignore=shutil.ignore_patterns("tests", "*.py", "__*"))
    text = (target / file).read_text()
    assert text.count(right) == 1, f"{file} no longer has: {right}"
    (target / file).write_text(text.replace(right, wrong))
    return target / SOURCE.name


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
    options = (*options_of((WARP,), flavour.types), "-ftls-model=global-dynamic")
    faulty = host.Library(source, options)
    layout = f"PP{len(plan.constants)}s"
    for name in ("fused_warp", "fused_warp_shifted"):
        kernel: Callable[..., None] = faulty.function(name, layout, WARP.threads)
        kernel(plan.blocks, *addresses, plan.constants)
    outcome = compare(out, part.expected, part.bound)
    assert not outcome.passed
    assert 0 < outcome.wrong <= 3 * 128 + 3 * 31


# Launches on memory that ends where the pixels end, in a process of its own.
_SCRIPT = """
import json, sys
from pathlib import Path
from kernels.host import Library
from kernels.sanitize import Buffer
given = json.load(sys.stdin)
library = Library(Path(given["source"]), given["options"])
for kernel, threads, blocks, text, *places in given["launches"]:
    x, y = (Buffer(*place) for place in places)
    constants = bytes.fromhex(text)
    function = library.function(kernel, "PP%ds" % len(constants), threads)
    function(blocks, x.address, y.address, constants)
    x.close(), y.close()
print(len(given["launches"]), "launches")
"""
Launches = list[tuple[object, ...]]


def launches(flavour: Flavour, variant: Variant, name: str, rows: Rows, *offsets: int) -> Launches:
    """Return a launch of a kernel at the offsets of x and y, in bytes, as the script takes it."""
    types, transform = flavour.types, PRESETS[flavour.transform]
    plan = plan_of(fixed(variant), (variant,), types, rows, (0, 0), transform, -1)
    spans = (
        (rows.rows - 1) * pitch * dtype.itemsize + rows.pixels * pixel
        for pitch, dtype, pixel in (
            (rows.x_pitch, types.source, types.in_pixel),
            (rows.y_pitch, types.target, types.out_pixel),
        )
    )
    places = zip(spans, offsets, strict=True)
    return [(name, variant.threads, plan.blocks, plan.constants.hex(), *places)]


def every_launch(flavour: Flavour) -> Launches:
    """Return launches of all kernels, about their tiles, at offsets alike and unlike, in rows too.

    A plain kernel needs x and y off alike, and pixels of one size.
    """
    types = flavour.types
    steps = types.source.itemsize, types.target.itemsize
    pairs = {(a * steps[0], a * steps[1]) for a in range(16 // max(steps))}
    pairs |= {(steps[0], 0), (0, steps[1]), (3 * steps[0], 5 * steps[1] % 16)}
    pitched = Rows(300, 3, 1, 300 * 3 + 5, 300 * 3 + 7)
    found: Launches = []
    for variant in DEFAULTS.values():
        name = f"fused_{variant.kernel}"
        for (x, y), rows in product(sorted(pairs), (Rows(1), Rows(PIXELS), Rows(700), pitched)):
            alike = x == y and types.in_pixel == types.out_pixel and rows.rows == 1
            if not variant.has_shifted or alike:
                found += launches(flavour, variant, name, rows, x, y)
            if variant.has_shifted:
                found += launches(flavour, variant, f"{name}_shifted", rows, x, y)
    return found


def sanitized(
    source: Path, flavour: Flavour, variants: Iterable[Variant], given: Launches
) -> subprocess.CompletedProcess[str]:
    """Launch under AddressSanitizer and UndefinedBehaviorSanitizer."""
    flags = (*options_of(variants, flavour.types), "-ftls-model=global-dynamic", *host.SANITIZE)
    host.compile_library(source, flags)
    environment = {
        **os.environ,
        **sanitize.OPTIONS,
        "LD_PRELOAD": sanitize.runtimes() or "",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    # Fibers switch stacks, which the detection of use after return does not follow.
    environment["ASAN_OPTIONS"] += ":detect_stack_use_after_return=0"
    text = json.dumps({"source": str(source), "options": flags, "launches": given})
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=text,
        capture_output=True, text=True, check=False, env=environment, timeout=120,
    )  # fmt: skip


@SANITIZERS
@pytest.mark.parametrize("flavour", [FLAVOURS[0], FLAVOURS[3]], ids=lambda f: f.name)
def test_the_sanitizers_find_nothing_in_any_kernel(flavour: Flavour) -> None:
    given = every_launch(flavour)
    assert len({name for name, *_ in given}) >= 6
    done = sanitized(SOURCE, flavour, DEFAULTS.values(), given)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{len(given)} launches\n"


def planted_run(source: Path) -> "subprocess.CompletedProcess[str]":
    given = launches(FLAVOURS[0], WARP, "fused_warp", Rows(PIXELS), 0, 0)
    return sanitized(source, FLAVOURS[0], (WARP,), given)


@SANITIZERS
def test_vectors_that_run_past_the_end_are_caught(tmp_path: Path) -> None:
    right = "tile.whole = tile.pixels == PIXELS && tile.begin == 0 && tile.end == vectors;"
    done = planted_run(planted(tmp_path, "tile.cuh", right, "tile.whole = tile.pixels > 0;"))
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


@SANITIZERS
def test_vectors_at_an_odd_address_are_caught(tmp_path: Path) -> None:
    right = "    tile.x = x - tile.shift;\n"
    wrong = right.replace("tile.shift", "tile.shift + 4")
    done = planted_run(planted(tmp_path, "tile.cuh", right, wrong))
    assert done.returncode != 0
    assert "misaligned address" in done.stderr
