"""`python -m kernels inspect KERNEL --arch sm_90`: a kernel's machine code, told to a person.

`python -m kernels build --arch sm_90 --host` compiles every kernel ahead of its first use.
`python -m kernels sanitize-gpu memcheck` looks at every launch of ours with compute-sanitizer.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kernels import host, sanitize_gpu
from kernels.build import BuildError, compile_cubin
from kernels.gate import ARCHITECTURES, Gate, gates, read, sources, violations
from kernels.sass import Facts


def _widths(counts: Mapping[int, int]) -> str:
    return (
        " ".join(f"{bits}x{count}" for bits, count in sorted(counts.items(), reverse=True)) or "-"
    )


def _line(found: Facts, broken: Sequence[str]) -> str:
    nan = "drops" if found.drops_nan else "keeps"
    flush = "yes" if found.flushes else "no"
    return (
        f"{found.name:34s}{found.instructions:>6d}{found.registers:>6d}{found.spills:>8d}"
        f"{_widths(found.loads):>18s}{_widths(found.stores):>18s}{nan:>7s}{flush:>7s}  "
        f"{'; '.join(text.split(': ', 1)[1] for text in broken) or 'ok'}"
    )


def inspect(checked: Gate, arch: str) -> tuple[list[str], bool]:
    """Return the lines that describe a kernel's machine code, and whether its gate passes."""
    lines = [f"{checked.kernel} for {arch}; accesses as bits x count in the code"]
    passed = True
    shown: tuple[str, ...] | None = None
    for options, found in read(checked, arch):
        if options != shown:
            shown = options
            lines.extend([*([f"built with {' '.join(options)}"] if options else []), _HEADER])
        broken = violations(found, checked.rules)
        passed = passed and not broken
        lines.append(_line(found, broken))
    if not checked.rules:
        where = f"kernels/{checked.kernel}/gate.py"
        lines.append(f"no gate yet: write GATE into {where}, see docs/add-a-kernel.md")
    return lines, passed


_HEADER = (
    f"{'function':34s}{'instr':>6s}{'regs':>6s}{'spills':>8s}{'loads':>18s}{'stores':>18s}"
    f"{'NaN':>7s}{'flush':>7s}  gate"
)


def _compilations(
    archs: Sequence[str], *, on_host: bool, sanitized: bool
) -> list[Callable[[], object]]:
    """Return a call for each compilation; a source's options for the CPU are its own affair."""
    checked = gates().values()
    sources = [each.source for each in checked if each.builds == ((),)]
    jobs: list[Callable[[], object]] = []
    if on_host:
        jobs += [partial(host.compile_library, source) for source in sources]
    for arch in archs:
        for each in checked:
            jobs += [partial(compile_cubin, each.source, arch, options) for options in each.builds]
    if sanitized:
        jobs += [partial(host.compile_library, source, host.SANITIZE) for source in sources]
    return jobs


def build(jobs: Sequence[Callable[[], object]], workers: int) -> list[str]:
    """Make compilations, `workers` at a time; return what went wrong with the messages."""

    def done(job: Callable[[], object]) -> str | None:
        try:
            job()
        except (BuildError, OSError) as error:
            return str(error)
        return None

    with ThreadPoolExecutor(workers) as pool:
        return [message for message in pool.map(done, jobs) if message is not None]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernels", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("inspect", help="facts of a kernel's machine code, no GPU needed")
    command.add_argument("kernel", choices=sources())
    command.add_argument("--arch", default="sm_90", help=f"such as {', '.join(ARCHITECTURES)}")
    command = commands.add_parser("build", help="compile every kernel ahead of its first use")
    command.add_argument(
        "--arch", nargs="*", default=[], help=f"such as {', '.join(ARCHITECTURES)}"
    )
    command.add_argument("--host", action="store_true", help="for the CPU, by g++")
    command.add_argument("--sanitized", action="store_true", help="for the CPU, with sanitizers")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    command = commands.add_parser(
        "sanitize-gpu", help="every launch of ours under compute-sanitizer, on a GPU"
    )
    command.add_argument("tool", choices=sanitize_gpu.TOOLS, help="none: the launches alone")
    command.add_argument("--only", nargs="+", default=[], choices=sorted(gates()), help="kernels")
    command.add_argument("--jobs", type=int, default=6, help="processes")
    command.add_argument(
        "--limit", type=float, default=sanitize_gpu.LIMIT_S, help="seconds until it gives up"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when all is well, 1 when something is wrong, 2 on wrong use."""
    given = _parser().parse_args(arguments)
    if given.command == "build":
        jobs = _compilations(given.arch, on_host=given.host, sanitized=given.sanitized)
        wrong = build(jobs, given.jobs)
        print("\n".join([*wrong, f"{len(jobs) - len(wrong)} of {len(jobs)} compiled"]))
        return 2 if wrong else 0
    try:
        if given.command == "sanitize-gpu":
            return sanitize_gpu.sanitize(given.tool, given.only, max(given.jobs, 1), given.limit)
        # A source that has no gate yet is shown all the same.
        checked = gates().get(given.kernel, Gate(given.kernel, ()))
        lines, passed = inspect(checked, given.arch)
    except (BuildError, FileNotFoundError, sanitize_gpu.CannotRunError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
