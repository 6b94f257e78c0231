"""Static facts of a CUBIN, read from its machine code: widths, spills, registers, NaN, flushing.

No GPU and no driver are needed: nvdisasm and cuobjdump of the toolkit read what would run.
"""

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from kernels import toolkit

_FUNCTION = re.compile(r"^\.text\.(\S+):$")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_USAGE = re.compile(r"Function (\S+?):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_WIDTH = re.compile(r"\.(?:[SU](8|16)|(64|128|256))(?=\.|$)")
_MAXIMUM = re.compile(r"^(?:U?FMNMX3?|V?HMNMX2)(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one kernel's machine code says. Widths are bits of an access, with their counts.

    `before_load` are the instructions ahead of the first load. `drops_nan` are maxima and minima
    that return the number when one operand is NaN; `flushes` are arithmetic instructions that flush
    subnormals.
    """

    name: str
    instructions: int
    before_load: int
    registers: int
    stack_bytes: int
    local_bytes: int
    shared_bytes: int
    loads: Mapping[int, int]
    stores: Mapping[int, int]
    spills: int
    drops_nan: tuple[str, ...]
    flushes: tuple[str, ...]


def width(opcode: str) -> int:
    """Return the bits that a load or store instruction moves for each thread."""
    found = _WIDTH.search(opcode)
    return int(found.group(1) or found.group(2)) if found else 32


def _run(tool: str, *arguments: str) -> str:
    command = [str(toolkit.binary(tool)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{tool} cannot read the CUBIN: {done.stderr.strip() or done.stdout[:200]}"
        )
    return done.stdout


def _opcodes(listing: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each function of a disassembly with its instructions' opcodes, padding left out."""
    name: str | None = None
    found: list[str] = []
    for line in listing.splitlines():
        started = _FUNCTION.match(line)
        if started or line.startswith("//---"):
            if name is not None:
                yield name, found
            name, found = (started.group(1), []) if started else (None, [])
        elif name is not None:
            instruction = _INSTRUCTION.match(line)
            if instruction and instruction.group(1) != "NOP":
                found.append(instruction.group(1))
    if name is not None:
        yield name, found


def _facts(name: str, opcodes: list[str], usage: tuple[int, int, int, int]) -> Facts:
    registers, stack, shared, local = usage
    maxima = (op for op in opcodes if _MAXIMUM.match(op))
    return Facts(
        name=name,
        instructions=len(opcodes),
        before_load=sum(1 for _ in takewhile(lambda op: not op.startswith("LDG"), opcodes)),
        registers=registers,
        stack_bytes=stack,
        local_bytes=local,
        shared_bytes=shared,
        loads=Counter(width(op) for op in opcodes if op.startswith("LDG")),
        stores=Counter(width(op) for op in opcodes if op.startswith("STG")),
        spills=sum(op.startswith(("LDL", "STL")) for op in opcodes),
        drops_nan=tuple(op for op in maxima if ".NAN" not in op),
        # An integer division rounds through F2I.FTZ, which flushes no datum of ours.
        flushes=tuple(op for op in opcodes if ".FTZ" in op and not op.startswith("F2I")),
    )


def facts(code: bytes) -> dict[str, Facts]:
    """Return the facts of every kernel in a CUBIN, by name.

    Raises FileNotFoundError when the toolkit's readers are not installed, RuntimeError when they
    refuse the bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.cubin"
        path.write_bytes(code)
        listing = _run("nvdisasm", "-c", str(path))
        usage = _run("cuobjdump", "-res-usage", str(path))
    used = {
        name: (int(registers), int(stack), int(shared), int(local))
        for name, registers, stack, shared, local in _USAGE.findall(usage.replace("\n", " "))
    }
    return {
        name: _facts(name, opcodes, used[name])
        for name, opcodes in _opcodes(listing)
        if name in used
    }
