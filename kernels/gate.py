"""What each kernel's machine code must be: the rules of the static gate, checked without a GPU."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from kernels.build import compile_cubin
from kernels.sass import Facts, facts

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Rule:
    """What the functions whose name matches `functions` must show.

    `load_bits` and `store_bits` are the accesses of the main path and must be there; `narrower` is
    how many narrower ones the edges may have (None: any number). `keeps_nan` forbids a maximum that
    drops NaN.
    """

    functions: str
    load_bits: int = 32
    store_bits: int = 32
    narrower: int | None = None
    registers: int = 32
    keeps_nan: bool = True


@dataclass(frozen=True, slots=True)
class Gate:
    """The builds of a kernel's source (each a tuple of extra compiler options) and their rules.

    The first rule that matches a function counts; one that no rule matches is a violation.
    """

    kernel: str
    rules: tuple[Rule, ...]
    builds: tuple[tuple[str, ...], ...] = ((),)

    @property
    def source(self) -> Path:
        """The kernel's CUDA source."""
        return _FOLDER / self.kernel / "cuda.cu"


# One element of each input and of the output, for the granules that an end cuts.
_UNARY = Rule(r"_x[124]_", load_bits=128, store_bits=128, narrower=2)
_BINARY = Rule(r"_x[124]_", load_bits=128, store_bits=128, narrower=3)
_SCALARS = (Rule("_scalar_f32"), Rule("_scalar_b?f16", load_bits=16, store_bits=16))
_OWN = (
    Gate("relu", (_UNARY, *_SCALARS)),
    Gate(
        "add",
        (
            _BINARY,
            Rule("_(float4|half8)_", load_bits=128, store_bits=128),
            Rule("_float2_", load_bits=64, store_bits=64),
            # Twelve bytes are no access of the machine: three loads, which the ladder shows.
            Rule("_(float3|float1|half2)_"),
            Rule("_half_", load_bits=16, store_bits=16),
        ),
    ),
    Gate("silu", (_UNARY,)),
    Gate("scale_relu", (_UNARY,)),
    # Its tables are read 4 bytes at a time where channels are no multiple of four.
    Gate("bn_relu_add", (Rule(r"_x1_", load_bits=128, store_bits=128),)),
    Gate(
        "convert",
        (
            Rule(r"_x[124]_f32_", load_bits=128, store_bits=64, narrower=2),
            Rule(r"_x[124]_b?f16_", load_bits=64, store_bits=128, narrower=2),
        ),
    ),
)


@cache
def gates() -> Mapping[str, Gate]:
    """Return every kernel's gate: those above, and `GATE` of each kernel folder with a gate.py."""
    found = {own.kernel: own for own in _OWN}
    for path in sorted(_FOLDER.glob("*/gate.py")):
        module = import_module(f"kernels.{path.parent.name}.gate")
        found[module.GATE.kernel] = module.GATE
    return found


def sources() -> list[str]:
    """Return the kernels that have CUDA source, with a gate or without."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/cuda.cu"))


def read(checked: Gate, arch: str) -> Iterator[tuple[tuple[str, ...], Facts]]:
    """Yield each build's options with the facts of each of its kernels."""
    for options in checked.builds:
        for found in facts(compile_cubin(checked.source, arch, options).code).values():
            yield options, found


def violations(found: Facts, rules: Sequence[Rule]) -> list[str]:
    """Return in one line each what a kernel's machine code breaks."""
    rule = next((r for r in rules if re.search(r.functions, found.name)), None)
    if rule is None:
        return [f"{found.name}: no rule says what it must be"]
    broken = []
    if not found.loads.get(rule.load_bits):
        widths = sorted(found.loads)
        broken.append(f"no {rule.load_bits}-bit load, only {widths} bits")
    if not found.stores.get(rule.store_bits):
        widths = sorted(found.stores)
        broken.append(f"no {rule.store_bits}-bit store, only {widths} bits")
    narrower = sum(n for bits, n in found.loads.items() if bits < rule.load_bits)
    narrower += sum(n for bits, n in found.stores.items() if bits < rule.store_bits)
    if rule.narrower is not None and narrower > rule.narrower:
        broken.append(f"{narrower} accesses narrower than the main path's, not {rule.narrower}")
    if found.spills or found.stack_bytes or found.local_bytes:
        broken.append(
            f"local memory: {found.spills} accesses, {found.stack_bytes} B of stack, "
            f"{found.local_bytes} B local"
        )
    if found.registers > rule.registers:
        broken.append(f"{found.registers} registers a thread, more than {rule.registers}")
    if rule.keeps_nan and found.drops_nan:
        broken.append(f"NaN is dropped by {', '.join(sorted(set(found.drops_nan)))}")
    if found.flushes:
        broken.append(f"subnormals are flushed by {', '.join(sorted(set(found.flushes)))}")
    return [f"{found.name}: {text}" for text in broken]


def check(checked: Gate, arch: str) -> list[str]:
    """Return every violation of a kernel's gate for an architecture; an empty list is a pass."""
    return [text for _, found in read(checked, arch) for text in violations(found, checked.rules)]
