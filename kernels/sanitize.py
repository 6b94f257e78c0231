"""The CUDA sources under AddressSanitizer and UndefinedBehaviorSanitizer, on the CPU.

`run` starts a small process with the sanitizers' runtimes preloaded (no torch in it) that launches
kernels on buffers whose last byte is the last of an allocation, at every alignment: one byte too
far is an error there, and so is a vector at an address that is not its multiple.
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from kernels.host import SANITIZE, Library, compile_library, compiler
from kernels.tiling import PLAIN_THREADS, VECTOR_BYTES, tile

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 255, 1025)
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=0:halt_on_error=1",
}


@dataclass(frozen=True, slots=True)
class Launches:
    """Launches of one kernel: each length at each combination of offsets.

    `name` may hold `{shifted}` and `{loads}`, which the tiling fills in; without them the kernel
    has a thread for `per_thread` elements and no shift. `sizes` are the bytes of an input and an
    output element; `step` the distance in elements between offsets; `tables` are further inputs of
    so many floats; `values` follow them; `grow` is a multiple that lengths are raised to.
    """

    name: str
    inputs: int = 1
    sizes: tuple[int, int] = (4, 4)
    loads: tuple[int, ...] = (1,)
    shifted: tuple[int, ...] = (1,)
    per_thread: int = 1
    step: int = 1
    tables: tuple[int, ...] = ()
    layout: str = ""
    values: tuple[float, ...] = ()
    lengths: tuple[int, ...] = LENGTHS
    grow: int = 1


class Buffer:
    """`size` bytes that end where an allocation ends, `offset` bytes past a 16-byte boundary."""

    def __init__(self, size: int, offset: int = 0) -> None:
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes = [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        self._free = libc.free
        self._base = libc.malloc(size + offset)
        self.address = self._base + offset
        ctypes.memset(self._base, 0x3C, size + offset)
        # Eight bytes are the least that can be forbidden: whole ones before the data are.
        forbid = getattr(libc, "__asan_poison_memory_region")  # plain, a class renames it
        forbid(ctypes.c_void_p(self._base), ctypes.c_size_t(offset & ~7))

    def close(self) -> None:
        """Give the memory back."""
        self._free(self._base)


def _offsets(launches: Launches) -> Iterator[tuple[int, ...]]:
    """Yield byte offsets of the inputs (alike but for the last) and of the output."""
    in_size, out_size = launches.sizes
    step_in, step_out = in_size * launches.step, out_size * launches.step
    for first, output in product(range(0, VECTOR_BYTES, step_in), range(0, VECTOR_BYTES, step_out)):
        others = (first, (first + step_in) % VECTOR_BYTES) if launches.inputs > 1 else (first,)
        for last in others:
            yield (*(first,) * (launches.inputs - 1), last, output)


def _launch(library: Library, launches: Launches, n: int, offsets: Sequence[int]) -> None:
    in_size, out_size = launches.sizes
    *input_offsets, output_offset = offsets
    inputs = [Buffer(n * in_size, offset) for offset in input_offsets]
    output = Buffer(n * out_size, output_offset)
    tables = [Buffer(4 * count) for count in launches.tables]
    pointers = [*(b.address for b in inputs), output.address]
    extra = (*(b.address for b in tables), *launches.values)
    layout = "P" * len(pointers) + "q"
    if "{loads}" in launches.name:
        cut = tile(pointers[:-1], pointers[-1], n, launches.sizes, launches.loads, launches.shifted)
        name = launches.name.format(loads=cut.loads, shifted="shifted_" if cut.shifted else "")
        function = library.function(name, f"{layout}II{launches.layout}", cut.threads)
        function(cut.blocks, *pointers, n, cut.before, cut.edges, *extra)
    else:
        function = library.function(launches.name, layout + launches.layout, PLAIN_THREADS)
        function(-(-n // (PLAIN_THREADS * launches.per_thread)), *pointers, n, *extra)
    for buffer in (*inputs, output, *tables):
        buffer.close()


def launch_all(source: Path, problems: Sequence[Launches]) -> int:
    """Make every launch in this process; return how many there were."""
    library, count = Library(source, SANITIZE), 0
    for launches in problems:
        for n in launches.lengths:
            for offsets in _offsets(launches):
                _launch(library, launches, -(-n // launches.grow) * launches.grow, offsets)
                count += 1
    return count


@cache
def runtimes() -> str | None:
    """Return the runtimes to preload, or None where the compiler has no sanitizers."""
    path = compiler()
    found = []
    for name in ("libasan.so", "libubsan.so"):
        command = [path or "g++", f"-print-file-name={name}"]
        try:
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        if not Path(printed.strip()).is_absolute():
            return None
        found.append(printed.strip())
    return " ".join(found)


def run(source: Path, problems: Sequence[Launches]) -> "subprocess.CompletedProcess[str]":
    """Make every launch in a process of its own under the sanitizers.

    A return code of 0 means that they found nothing; stdout then says how many launches there were.
    """
    compile_library(source, SANITIZE)
    environment = {**os.environ, **OPTIONS, "LD_PRELOAD": runtimes() or "", "OMP_NUM_THREADS": "1"}
    given = json.dumps([asdict(problem) for problem in problems])
    return subprocess.run(
        [sys.executable, "-m", "kernels.sanitize", str(source)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parent.parent,
    )


def _launches(data: Mapping[str, Any]) -> Launches:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Launches(**fields)


if __name__ == "__main__":
    print(launch_all(Path(sys.argv[1]), [_launches(item) for item in json.load(sys.stdin)]))
