"""Half conversions: where the four roundings differ, bit for bit, and what each costs.

All finite numbers of fp16 and of bf16 are taken as fp32, and with each the fp32 numbers that decide
a rounding: just above it, just below the tie with its neighbour, the tie, just above the tie, and
just below the neighbour. The suite's own kernel converts them in all four ways.
"""

from __future__ import annotations

from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch

from kernels.cases import Case
from kernels.convert.contract import ROUNDINGS
from kernels.convert.reference import reference
from kernels.registry import get
from perftests.studies.conversions_told import drawing, verdict
from perftests.studies.frame import Findings, Study, attempted, measured_rows, reason_of
from perftests.studies.tables import Row, Section
from perftests.suite import workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from perftests.studies.frame import Scope

TARGETS = {"fp16": torch.float16, "bf16": torch.bfloat16}
PAIRS = tuple(combinations(ROUNDINGS, 2))
SIZES_MIB, _SMALL_SIZES_MIB = (16, 256), (1, 4)
_MIB = 1 << 20
_OURS, _PEER = "cuda_vector", "torch"
_ARCH = "sm_90"
_LARGEST = {"fp16": 0x7BFF, "bf16": 0x7F7F}
_BEYOND = {"fp16": 0x47800000, "bf16": 0x7F800000}
"""The fp32 bits of what would follow the largest number: 65536, and infinity."""
_STEPS = np.linspace(-2.5, 2.5, 401) * 2.0**-24
"""A sweep through the smallest numbers of fp16, which shows all four roundings at once."""
LANDMARKS: tuple[tuple[str, float], ...] = (
    ("0.1", 0.1),
    ("1/3", 1 / 3),
    ("-1/3", -1 / 3),
    ("1 + 2^-11: fp16 tie, even below", 1 + 2.0**-11),
    ("1 + 3 * 2^-11: fp16 tie, even above", 1 + 3 * 2.0**-11),
    ("1 + 2^-8: bf16 tie, even below", 1 + 2.0**-8),
    ("1 + 3 * 2^-8: bf16 tie, even above", 1 + 3 * 2.0**-8),
    ("65504: the largest fp16", 65504.0),
    ("65519.996: below the last tie of fp16", 65519.99609375),
    ("65520: the last tie of fp16", 65520.0),
    ("-65520", -65520.0),
    ("2^-14 - 2^-25: fp16 tie with the smallest normal", 2.0**-14 - 2.0**-25),
    ("2^-24: the smallest fp16", 2.0**-24),
    ("2^-25: fp16 tie with zero", 2.0**-25),
    ("2^-25 (1 + 2^-23)", 2.0**-25 * (1 + 2.0**-23)),
    ("-2^-26", -(2.0**-26)),
    ("(2 - 2^-23) 2^127: the largest fp32", (2 - 2.0**-23) * 2.0**127),
    ("-(2 - 2^-23) 2^127", -(2 - 2.0**-23) * 2.0**127),
    ("2^-149: the smallest fp32", 2.0**-149),
    ("-2^-149", -(2.0**-149)),
    ("-0", -0.0),
    ("inf", float("inf")),
    ("NaN", float("nan")),
)


def deciding(target: str) -> dict[str, torch.Tensor]:
    """Return the fp32 inputs by kind, one for each finite number of a half type.

    Bits grow with the magnitude, for both signs, so a neighbour is one more or less.
    """
    magnitudes = np.arange(_LARGEST[target] + 1, dtype=np.uint16)
    own = _as_fp32_bits(magnitudes, target)
    following = np.append(own[1:], np.uint32(_BEYOND[target]))
    halfway = _between(own, following, target)
    found = {
        "the number": own,
        "just above it": own + 1,
        "just below the tie": halfway - 1,
        "the tie": halfway,
        "just above the tie": halfway + 1,
        "just below the next": following - 1,
    }
    return {kind: _both_signs(bits) for kind, bits in found.items()}


def _as_fp32_bits(patterns: np.ndarray, target: str) -> np.ndarray:
    if target == "bf16":
        return patterns.astype(np.uint32) << 16
    return patterns.view(np.float16).astype(np.float32).view(np.uint32)


def _between(low: np.ndarray, high: np.ndarray, target: str) -> np.ndarray:
    """Return the bits of the middle of two neighbours; of bf16 the bits themselves have one."""
    if target == "bf16":
        return low + np.uint32(0x8000)
    middle = (low.view(np.float32).astype(np.float64) + high.view(np.float32)) / 2
    return middle.astype(np.float32).view(np.uint32)


def _both_signs(bits: np.ndarray) -> torch.Tensor:
    signed = np.concatenate([bits, bits | np.uint32(0x80000000)]).astype(np.uint32)
    return torch.from_numpy(signed.view(np.float32).copy())


def converted(x: torch.Tensor, target: str, rounding: str, device: torch.device) -> torch.Tensor:
    """Return the 16-bit patterns that our kernel makes of fp32 numbers, as integers on the CPU."""
    to = str(TARGETS[target]).removeprefix("torch.")
    given = x.to(device)
    out = torch.empty(x.shape, dtype=TARGETS[target], device=device)
    get("convert", _OURS)(given, out=out, to=to, rounding=rounding)
    return out.view(torch.int16).cpu().int() & 0xFFFF


def _expected(x: torch.Tensor, target: str, rounding: str) -> torch.Tensor:
    to = str(TARGETS[target]).removeprefix("torch.")
    exact = reference(x, to=to, rounding=rounding)
    return exact.to(TARGETS[target]).view(torch.int16).int() & 0xFFFF


def differences(device: torch.device) -> Section:
    """Return how often each two roundings differ, and how often the kernel is wrong."""
    rows: list[Row] = []
    for target in TARGETS:
        for kind, x in deciding(target).items():
            found = {r: converted(x, target, r, device) for r in ROUNDINGS}
            row: Row = {"to": target, "fp32 input": kind, "numbers": x.numel()}
            row |= {f"{a} != {b}": _count(found[a], found[b]) for a, b in PAIRS}
            wrong = sum(_count(found[r], _expected(x, target, r)) for r in ROUNDINGS)
            rows.append({**row, "wrong": wrong})
    how = (
        "For every finite number of the half type, both signs, the fp32 numbers that decide a "
        "rounding: how many results of each two roundings differ in a bit, and how many of all "
        "four differ from the reference in float64"
    )
    return Section("Where the roundings differ", how, rows)


def _count(left: torch.Tensor, right: torch.Tensor) -> int:
    return int((left != right).sum())


def landmarks(device: torch.device) -> Section:
    """Return what becomes of chosen numbers, in hexadecimal."""
    x = torch.tensor([value for _, value in LANDMARKS], dtype=torch.float32)
    source = x.view(torch.int32).tolist()
    columns = {
        f"{target} {r}": converted(x, target, r, device).tolist()
        for target in TARGETS
        for r in ROUNDINGS
    }
    rows: list[Row] = []
    for k, (name, _) in enumerate(LANDMARKS):
        row: Row = {"fp32 input": name, "fp32": f"{source[k] & 0xFFFFFFFF:08x}"}
        rows.append(row | {column: f"{bits[k]:04x}" for column, bits in columns.items()})
    return Section("Landmarks", "Results in hexadecimal, by the kernel under test", rows)


def speed(scope: Scope) -> Section:
    """Return the times of every rounding and target, and torch's beside rn."""
    rows: list[Row] = []
    failed = ""
    sizes = _SMALL_SIZES_MIB if scope.small else SIZES_MIB
    for mib in sizes:
        for target in TARGETS:
            for rounding, name in (*((r, _OURS) for r in ROUNDINGS), ("rn", _PEER)):
                try:
                    rows.append(_timed(scope, mib, target, rounding, name))
                except RuntimeError as error:
                    failed += f"; {reason_of(error)}"
    how = f"Cold medians; MiB are those of the fp32 input, bytes those read and written{failed}"
    return Section("Times", how, rows, {"time": "us", "rate": "GB/s", "of copy": "%"})


def _timed(scope: Scope, mib: int, target: str, rounding: str, name: str) -> Row:
    to = str(TARGETS[target]).removeprefix("torch.")
    parameters = {"to": to, "rounding": rounding}
    case = Case("convert", "float32", (mib * _MIB // 4,), parameters=parameters)
    implementation = get("convert", name)
    reason = implementation.unavailable(scope.device, torch.float32)
    if reason is not None:
        raise RuntimeError(reason)
    outcome = scope.measure(workload(implementation, case, scope.device))
    seconds = median(outcome.seconds)
    rate = outcome.result["bytes_moved"] / seconds
    row: Row = {"MiB": mib, "to": target, "rounding": rounding, "implementation": name}
    row |= {"time": seconds, "rate": rate}
    copy = outcome.result["peaks"].get("copy_bytes_per_s")
    return row | {"of copy": rate / copy} if copy else row


def machine_code() -> Section:
    """Return how many instructions each rounding takes; needs no GPU."""
    from kernels import build, sass

    source: Path = get("convert", _OURS).source  # type: ignore[attr-defined]
    found = sass.facts(build.compile_cubin(source, _ARCH).code)
    rows: list[Row] = [
        {
            "to": target,
            "rounding": rounding,
            "instructions": found[f"convert_{rounding}_x2_f32_{suffix}"].instructions,
            "registers": found[f"convert_{rounding}_x2_f32_{suffix}"].registers,
        }
        for target, suffix in (("fp16", "f16"), ("bf16", "bf16"))
        for rounding in ROUNDINGS
    ]
    how = f"The kernel of two 16-byte loads a thread, built for {_ARCH}: eight conversions a thread"
    return Section("Machine code", how, rows)


def staircase(device: torch.device) -> Mapping[str, list[float]]:
    """Return a sweep about zero and what each rounding makes of it in fp16, in units of 2^-24."""
    x = torch.from_numpy(_STEPS.astype(np.float32))
    found = {"x": (x.double() * 2.0**24).tolist()}
    for rounding in ROUNDINGS:
        bits = converted(x, "fp16", rounding, device).to(torch.int16)
        found[rounding] = (bits.view(torch.float16).double() * 2.0**24).tolist()
    return found


def run(scope: Scope) -> Findings:
    """Convert what decides, then time all roundings on the scope's device."""
    differ = attempted("Where the roundings differ", lambda: differences(scope.device))
    named = attempted("Landmarks", lambda: landmarks(scope.device))
    times = attempted("Times", lambda: speed(scope))
    code = attempted("Machine code", machine_code)
    rows = measured_rows(differ), measured_rows(times)
    draw = drawing(staircase(scope.device), rows[1]) if rows[0] else None
    return Findings((differ, named, times, code), verdict(*rows), draw)


STUDY = Study(
    "conversions",
    "Half conversions",
    "Performance model and elementwise optimisation (article C) lists conversions to half rounded "
    "to nearest, towards zero, up and down (rn, rz, ru, rd) beside each other, as a choice of "
    "results; it says neither how often they differ nor what each costs.",
    run,
)
