"""Blocks of the fused transform: a thread a pixel, a tile a block, a tile a warp, by threads.

Article A chose its block size on this kernel, and ReLU has no tiles in shared memory to sweep.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels import build, launch
from kernels.cases import Case
from kernels.fused_transform import alone
from kernels.fused_transform.cuda_impl import SOURCE
from kernels.fused_transform.variants import DEFAULTS, Types, Variant, options_of
from perftests.studies.frame import measured_rows
from perftests.studies.tables import Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from perftests.studies.frame import Scope
    from perftests.studies.tables import Row

IMAGES, SMALL_IMAGES = (85, 512, 512, 3), (2, 96, 128, 3)
TYPES = Types(torch.float32, torch.float32, 3, 3)
TRANSFORM = {"transform": "imagenet_ycbcr"}
VARIANTS = (
    *(Variant("scalar", threads) for threads in (64, 128, 256, 512, 1024)),
    *(Variant("shared", threads) for threads in (64, 128, 256, 512)),
    *(Variant("warp", threads) for threads in (32, 64, 128, 256)),
)
SMALL_VARIANTS = (DEFAULTS["scalar"], DEFAULTS["shared"])
KINDS = {"scalar": "a thread a pixel", "shared": "a tile a block", "warp": "a tile a warp"}
A_THREADS = (128, 256, 512)
_COMPILERS = 8


def compiled(source: Path, arch: str, builds: Sequence[tuple[str, ...]]) -> None:
    """Compile a source with each set of options, some at once; launches find them on disk."""
    with ThreadPoolExecutor(_COMPILERS) as pool:
        list(pool.map(lambda options: build.compile_cubin(source, arch, options), builds))


def blocks(scope: Scope) -> Section:
    """Measure the fused transform in each block."""
    variants = SMALL_VARIANTS if scope.small else VARIANTS
    if scope.gpu:
        arch = launch.arch_of(launch.index_of(scope.device))
        compiled(SOURCE, arch, [options_of((variant,), TYPES) for variant in variants])
    shape = SMALL_IMAGES if scope.small else IMAGES
    case = Case("fused_transform", "float32", shape, parameters=TRANSFORM)
    rows = [_row(scope, case, variant) for variant in variants]
    how = (
        f"{case.label}, cold medians; `tile` is what a block reads; `of copy` over a copy that "
        "moves as many bytes"
    )
    units = {"time": "us", "of copy": "%", "tile": "KiB"}
    return Section("Blocks of the fused transform", how, rows, units)


def _row(scope: Scope, case: Case, variant: Variant) -> Row:
    parameters: dict[str, str | int] = {
        **TRANSFORM,
        "kernel": variant.kernel,
        "threads": variant.threads,
    }
    load = workload(alone("study_block", variant), case, scope.device)
    outcome = scope.measure(replace(load, parameters=parameters, small=None))
    seconds = median(outcome.seconds)
    pixels = 1 if variant.kernel == "scalar" else TYPES.vector_pixels * variant.vectors
    copy = outcome.result["peaks"].get("copy_bytes_per_s") or float("nan")
    return {
        "kernel": KINDS[variant.kernel],
        "threads": variant.threads,
        "tile": variant.threads * pixels * TYPES.in_pixel,
        "time": seconds,
        "of copy": load.bytes_moved / seconds / copy,
    }


def told(section: Section) -> str:
    """Return what article A's block sizes do on its own kernel, and which block is best."""
    rows = measured_rows(section)
    if not rows:
        return "The fused transform's blocks were not measured."
    best = min(rows, key=lambda row: float(row["time"]))
    plain = {
        int(row["threads"]): float(row["of copy"])
        for row in rows
        if row["kernel"] == KINDS["scalar"] and row["threads"] in A_THREADS
    }
    parts = [f"{threads} threads {share:.1%}" for threads, share in plain.items()]
    return (
        f"The fused transform with a thread a pixel reaches, of a copy's rate, {', '.join(parts)}; "
        f"the best block is {best['kernel']} of {best['threads']} threads at "
        f"{float(best['of copy']):.1%}."
    )
