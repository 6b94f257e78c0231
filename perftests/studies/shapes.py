"""Launch shapes of the elementwise kernels: threads a block x vectors a thread, by size.

    python -m perftests.studies.shapes                      # relu, add, silu, convert; two minutes
    python -m perftests.studies.shapes relu:float16 --sizes 1 16 --loads 1 2 4

Each source is compiled for each number of threads and launched in every shape that it has, under
the harness's cold timer. The outputs are not checked here: the tests of `kernels/` do that. What
the figures decided stands in `kernels/tiling.py` and docs/results/kernel-tuning.md.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from perftests.harness.session import Bench

MIB = 1 << 20
OURS = "cuda_vector"
PROBLEMS = ("relu:float32", "relu:float16", "add:float32", "add:float16", "silu:float32",
            "silu:float16", "convert:float32", "convert:float16")  # fmt: skip
SIZES_MIB = (1, 4, 8, 16, 32, 64, 256)
THREADS = (128, 256)
LOADS = (1, 2, 4)
SAMPLE_S = 0.03
_PLACES = 4
"""Buffer sets that a small problem is measured on: placement shifts a median."""


def launches(
    problem: str, mib: int, threads: int, loads: int, offset: int
) -> list[Callable[[], None]] | None:
    """Return the launch on some buffer sets, None where the source has no such shape."""
    import torch

    from kernels import build, launch
    from kernels.cuda import CudaImplementation
    from kernels.inputs import empty_at
    from kernels.registry import definition, get
    from kernels.tiling import tile

    kernel, name = problem.split(":")
    meaning = definition(kernel)
    dtype: torch.dtype = getattr(torch, name)
    target = dtype
    if kernel == "convert":
        target = torch.float16 if dtype == torch.float32 else torch.float32
    n, count = mib * MIB // dtype.itemsize, len(meaning.inputs)
    device = torch.device("cuda", 0)
    vector = get(kernel, OURS)
    assert isinstance(vector, CudaImplementation)
    module = launch.Module(
        build.compile_cubin(vector.source, launch.arch_of(0), (f"-DTHREADS={threads}",)), 0
    )
    extra = (0.7,) if kernel == "scale_relu" else ()
    found: list[Callable[[], None]] = []
    for _ in range(_PLACES if mib <= 64 else 1):
        inputs = [empty_at((n,), dtype, device, offset).normal_() for _ in range(count)]
        out = empty_at((n,), target, device)
        addresses = [x.data_ptr() for x in (*inputs, out)]
        sizes = (dtype.itemsize, target.itemsize)
        cut = tile(addresses[:-1], addresses[-1], n, sizes, (loads,), (loads,), threads)
        symbol = f"{_symbol(kernel, dtype)}_{'shifted_' if cut.shifted else ''}x{loads}"
        try:
            function = module.function(
                f"{symbol}_{_suffix(kernel, dtype, target)}",
                "P" * (count + 1) + "qII" + "f" * len(extra),
                threads,
            )
        except RuntimeError:  # the driver knows no such function
            return None
        call = function.bind(cut.blocks, *addresses, n, cut.before, cut.edges, *extra)
        found.append(_holding(call, (*inputs, out)))
    return found


def _holding(call: Callable[[], None], tensors: Sequence[torch.Tensor]) -> Callable[[], None]:
    """Return the call with the tensors whose memory it uses."""

    def held(_tensors: Sequence[torch.Tensor] = tensors) -> None:
        call()

    return held


def _symbol(kernel: str, dtype: torch.dtype) -> str:
    import torch

    return "convert_rn" if kernel == "convert" and dtype == torch.float32 else kernel


def _suffix(kernel: str, source: torch.dtype, target: torch.dtype) -> str:
    from kernels.cuda import SUFFIX

    return f"{SUFFIX[source]}_{SUFFIX[target]}" if kernel == "convert" else SUFFIX[target]


def seconds(bench: Bench, calls: list[Callable[[], None]], sample_s: float) -> float:
    """Return the cold median of launches."""
    from dataclasses import replace

    from perftests.harness.sampling import collect, warm_up

    runner = bench.device.runner("cold", calls)
    warmth = warm_up(runner, floor_s=0.002, cap_s=0.3)
    rule = replace(bench.rule(), max_seconds=sample_s)
    return median(collect(runner, rule, warmth=warmth).seconds)


def table(bench: Bench, problem: str, given: argparse.Namespace) -> str:
    """Return a problem's times in microseconds as Markdown, the best of each size in bold."""
    import torch

    shapes = [(threads, loads) for threads in given.threads for loads in given.loads]
    columns: list[dict[tuple[int, int], float]] = []
    for mib in given.sizes:
        column = {}
        for threads, loads in shapes:
            calls = launches(problem, mib, threads, loads, given.offset)
            if calls is not None:
                column[threads, loads] = seconds(bench, calls, given.seconds)
        columns.append(column)
        torch.cuda.empty_cache()
    lines = [
        f"| {problem} in+{given.offset} | {' | '.join(f'{mib} MiB' for mib in given.sizes)} |",
        f"|---|{'---|' * len(given.sizes)}",
    ]
    for shape in shapes:
        cells = [_cell(column, shape) for column in columns]
        if any(cell != "-" for cell in cells):
            lines.append(f"| {shape[0]} x{shape[1]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(column: dict[tuple[int, int], float], shape: tuple[int, int]) -> str:
    if shape not in column:
        return "-"
    text = f"{column[shape] * 1e6:.2f}"
    return f"**{text}**" if column[shape] == min(column.values()) else text


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; return 2 when nothing can be measured."""
    parser = argparse.ArgumentParser(description="times of launch shapes, in microseconds")
    parser.add_argument("problems", nargs="*", metavar="KERNEL:DTYPE", default=list(PROBLEMS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES_MIB), metavar="MIB")
    parser.add_argument("--threads", type=int, nargs="+", default=list(THREADS))
    parser.add_argument("--loads", type=int, nargs="+", default=list(LOADS))
    parser.add_argument("--offset", type=int, default=0, help="of the inputs, in elements")
    parser.add_argument("--seconds", type=float, default=SAMPLE_S, help="cap of a sample")
    given = parser.parse_args(arguments)
    import torch

    from perftests.harness.session import Session
    from perftests.harness.settings import Settings

    if not torch.cuda.is_available():
        print("cannot measure launch shapes: torch sees no GPU", file=sys.stderr)
        return 2
    bench = Session(Settings()).bench(torch.device("cuda", 0))
    with bench.lock.alone(), bench.device.stream():
        for problem in given.problems:
            print(table(bench, problem, given), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
