"""Our own kernels under compute-sanitizer: a few processes, each with a part of the launches.

`python -m kernels sanitize-gpu memcheck` looks for accesses beyond allocations and off their
alignment, `racecheck` for threads that share memory without a barrier. Each run also starts kernels
with a planted fault, which the tool must find.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels import planted

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "racecheck", "none")
# By tool: planted sources with the words that the tool finds their fault by.
PLANTED = {
    "memcheck": (
        (planted.PAST_THE_END, "Invalid __global__ read of size 16 bytes"),
        (planted.ODD_ADDRESS, "misaligned"),
    ),
    "racecheck": ((planted.NO_BARRIER, "Race reported between"),),
    "none": (),
}
PLANTED_LENGTH = 1023
ERROR_EXIT = 9
LIMIT_S = 300.0


class CannotRunError(RuntimeError):
    """Nothing can be looked at here: one line says why and what to do."""


@dataclass
class Part:
    """One process: what it launches, and once it has ended, what it said."""

    title: str
    process: "subprocess.Popen[str]"
    output: str = ""


def find_tool() -> str:
    """Return the path of compute-sanitizer. Raises CannotRunError when there is none."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    places = os.pathsep.join([os.environ.get("PATH", ""), *(f"{h}/bin" for h in homes if h)])
    found = shutil.which("compute-sanitizer", path=places)
    if found is None:
        raise CannotRunError(
            "compute-sanitizer is neither on PATH nor under CUDA_HOME/bin or /usr/local/cuda/bin; "
            "install the CUDA toolkit's compute-sanitizer"
        )
    return found


def command(tool: str, *arguments: str) -> list[str]:
    """Return the command that runs this module's launches under a tool, or plainly for "none"."""
    own = [sys.executable, "-m", "kernels.sanitize_gpu", *arguments]
    if tool == "none":
        return own
    flags = ["--tool", tool, "--error-exitcode", str(ERROR_EXIT)]
    if tool == "memcheck":  # of API calls torch tries some that are allowed to fail
        flags += ["--report-api-errors", "no"]
    return [find_tool(), *flags, *own]


def shares_memory(kernel: str) -> bool:
    """Return whether a kernel's sources use shared memory: the others have nothing to race for."""
    sources = sorted((ROOT / "kernels" / kernel).glob("*.cu*"))
    return any("__shared__" in source.read_text() for source in sources)


def kernels_for(tool: str, only: Sequence[str]) -> list[str]:
    """Return the kernels that a tool looks at, of `only` when it names some."""
    from kernels import registry

    chosen = [kernel for kernel in registry.kernels() if not only or kernel in only]
    return [k for k in chosen if tool != "racecheck" or shares_memory(k)]


def _start(title: str, words: Sequence[str]) -> Part:
    environment = {
        **os.environ,
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return Part(title, process)


def _finish(parts: Sequence[Part], limit_s: float) -> None:
    """Wait for all parts together. Raises CannotRunError when they take longer than the limit."""
    start = time.monotonic()
    try:
        for part in parts:
            left = limit_s - (time.monotonic() - start)
            part.output, _ = part.process.communicate(timeout=max(left, 0.1))
    except subprocess.TimeoutExpired as error:
        raise CannotRunError(
            f"{parts[0].title} and the rest did not end within {limit_s:.0f} s; "
            "take fewer kernels (--only) or more time (--limit)"
        ) from error
    finally:
        for part in parts:
            part.process.kill()


def _last_json(output: str) -> dict[str, object]:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            found: dict[str, object] = json.loads(line)
            return found
    return {}


def _judge(part: Part) -> tuple[int, list[str]]:
    """Return a part's launches, and in lines what was wrong with it."""
    said = _last_json(part.output)
    launches, wrong = said.get("launches", 0), said.get("wrong", [])
    assert isinstance(launches, int)
    assert isinstance(wrong, list)
    lines = [str(text) for text in wrong]
    if part.process.returncode or not said:
        told = [line for line in part.output.splitlines() if line.strip()]
        lines += [f"exit {part.process.returncode}", *told[-40:]]
    return launches, lines


def _judge_planted(part: Part, words: str) -> list[str]:
    if part.process.returncode == ERROR_EXIT and words.lower() in part.output.lower():
        return []
    told = [line for line in part.output.splitlines() if line.strip()]
    return [f"exit {part.process.returncode}, no {words!r} in what was said", *told[-20:]]


def sanitize(tool: str, only: Sequence[str], jobs: int, limit_s: float = LIMIT_S) -> int:
    """Look at all launches with a tool and print what it found; return 0 when clean, else 1.

    Raises CannotRunError without a GPU or the tool, or when the time is up.
    """
    import torch

    from kernels import exact

    if not torch.cuda.is_available():
        raise CannotRunError("no NVIDIA GPU here: compute-sanitizer has nothing to look at")
    start = time.monotonic()
    kernels = kernels_for(tool, only)
    # A process that launches nothing is an error to the tool.
    jobs = min(jobs, len(exact.groups(kernels)))
    parts = [
        _start(f"part {k + 1} of {jobs}", command(tool, "launch", f"{k}/{jobs}", *kernels))
        for k in range(jobs)
    ]
    faults = [
        _start(f"planted fault {k + 1}", command(tool, "plant", tool, str(k)))
        for k in range(len(PLANTED[tool]))
    ]
    _finish([*parts, *faults], limit_s)
    total, clean = 0, True
    for part in parts:
        launches, wrong = _judge(part)
        total += launches
        clean = clean and not wrong
        _tell(part.title, f"{launches} launches, {'NOT CLEAN' if wrong else 'clean'}", wrong)
    for part, (_, words) in zip(faults, PLANTED[tool], strict=True):
        wrong = _judge_planted(part, words)
        clean = clean and not wrong
        _tell(part.title, "NOT FOUND" if wrong else f"found ({words})", wrong)
    verdict = "clean" if clean else "NOT CLEAN"
    seconds = time.monotonic() - start
    print(f"{tool}: {total} launches of {', '.join(kernels)}: {verdict}, {seconds:.0f} s")
    return 0 if clean else 1


def _tell(title: str, found: str, details: Sequence[str]) -> None:
    print("\n  ".join([f"{title}: {found}", *details]), flush=True)


def launch_part(part: str, kernels: Sequence[str]) -> int:
    """Make the launches of part "k/n" in this process and print them as JSON."""
    import torch

    from kernels import exact

    torch.set_num_threads(1)
    index, count = map(int, part.split("/"))
    own = exact.shard(exact.groups(kernels), count)[index]
    found = exact.run(own, torch.device("cuda"))
    print(json.dumps({"launches": found.launches, "wrong": found.wrong[:20]}), flush=True)
    return 1 if found.wrong else 0


def launch_planted(tool: str, index: int) -> int:
    """Launch one planted fault on tensors whose last byte is the last of an allocation."""
    import torch

    from kernels import launch

    text, _ = PLANTED[tool][index]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "planted" / "cuda.cu"
        source.parent.mkdir()
        source.write_text(text)
        function = launch.module(source, 0).function("planted", "PPq", 256)
    x = torch.zeros(PLANTED_LENGTH).to("cuda")
    y = torch.zeros(PLANTED_LENGTH).to("cuda")
    function(1, x.data_ptr(), y.data_ptr(), PLANTED_LENGTH)
    torch.cuda.synchronize()
    print(json.dumps({"launches": 1, "wrong": []}), flush=True)
    return 0


if __name__ == "__main__":
    what, first, *rest = sys.argv[1:]
    sys.exit(launch_part(first, rest) if what == "launch" else launch_planted(first, int(rest[0])))
