"""Fast math and folding against accuracy: the fused transform in the forms that people write it in.

Every form is set against float64 on two kinds of images: random ones, and ones close to the mean,
where what is left after the subtraction is small. Errors are told relative to the operands'
magnitude, as the suite's bound has them (kernels/fused_transform/tolerance.py), and in ULPs, which
explode wherever an output passes through zero.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import torch

from kernels.cases import Case
from kernels.registry import get
from kernels.tolerances import half_ulp
from perftests.studies.accuracy_forms import FAST_MATH, SOURCE, UNIT, Form, images
from perftests.studies.accuracy_told import drawing, verdict
from perftests.studies.frame import Findings, Study, attempted, measured_rows, reason_of
from perftests.studies.tables import Row, Section

if TYPE_CHECKING:
    from perftests.studies.frame import Scope

_F32, _F16, _BF16, _U8 = torch.float32, torch.float16, torch.bfloat16, torch.uint8
_HALVES = (_F16, _BF16)
FORMS = (
    Form("divided"),
    Form("divided", fast=True),
    Form("reciprocal"),
    Form("folded"),
    Form("folded", folded_in="float32"),
    Form("folded", fast=True),
    *(
        Form(kernel, half, half)
        for half in _HALVES
        for kernel in ("divided", "folded", "half_divided", "half_folded")
    ),
    Form("divided", _U8),
    Form("folded", _U8),
    Form("folded", _U8, _F16),
)
TIMED = tuple(form for form in FORMS if form.folded_in == "float64")
OURS = ("torch_eager", "torch_folded", "triton", "cuda_scalar", "cuda_vector")
IMAGES, NEAR = "random images", "close to the mean"
_SHAPE, _SMALL_SHAPE = (85, 512, 512, 3), (2, 128, 128, 3)
_PIXELS, _SMALL_PIXELS = 1 << 20, 1 << 16
_NEARNESS = 1 / 64
_ARCH = "sm_90"
_SEED = 20261129


def errors(
    got: torch.Tensor, expected: torch.Tensor, magnitude: torch.Tensor, allowed: torch.Tensor
) -> Row:
    """Return how far `got` is from the float64 `expected`, all of one shape.

    Relative to `magnitude` in units of 2^-24, as a part of the error `allowed`, and in ULPs of
    the type of `got`.
    """
    error = (got.double() - expected).abs()
    relative = error / magnitude / UNIT
    ulps = error / (2 * half_ulp(expected, got.dtype))
    return {
        "max error": float(relative.max()),
        "mean error": float(relative.mean()),
        "of bound": float((error / allowed).max()),
        "median ULP": float(ulps.median()),
        "max ULP": float(ulps.max()),
    }


def inputs_of(form: Form, pixels: int, device: torch.device, kind: str) -> torch.Tensor:
    """Return images [pixels, 3] of a kind in a form's type."""
    generator = torch.Generator(device=device).manual_seed(_SEED)
    if kind == IMAGES:
        return images((pixels, 3), form.source, generator)
    mean, std, _ = (torch.from_numpy(a).to(device) for a in form.transform.arrays())
    spread = torch.rand((pixels, 3), generator=generator, device=device, dtype=torch.float64) - 0.5
    near = mean + spread * std * _NEARNESS
    return (near.round() if form.source == _U8 else near).to(form.source)


def _named(form: Form) -> Row:
    kernel = form.kernel.removeprefix("half_")
    return {
        "form": f"{kernel}, constants folded in fp32" if form.folded_in == "float32" else kernel,
        "x": _told(form.source),
        "y": _told(form.target),
        "arithmetic": _told(form.target) if form.half_arithmetic else "float32",
        "fast math": form.fast,
    }


def _told(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def accuracy(device: torch.device, pixels: int, kind: str) -> Section:
    """Return the errors of every form that runs on a device."""
    rows: list[Row] = []
    left_out = set()
    for form in FORMS:
        reason = form.unavailable(device)
        if reason is not None:
            left_out.add(reason)
            continue
        x = inputs_of(form, pixels, device, kind)
        out = torch.empty(x.shape, dtype=form.target, device=device)
        form(x, out)
        found = errors(out, form.expected(x), form.magnitude(x), form.bound(x))
        if form.source in _HALVES:
            wide = inputs_of(Form(form.kernel), pixels, device, kind)
            error = (out.double() - form.expected(wide)).abs() / form.magnitude(wide)
            found["max error, x's own rounding too"] = float(error.max()) / UNIT
        rows.append({**_named(form), **found})
    missing = "".join(f"; left out: {reason}" for reason in sorted(left_out))
    how = (
        f"{pixels} pixels {kind} against float64 of the same x; errors relative to the operands' "
        "magnitude in units of 2^-24, as a part of what the form's roundings may do, and in ULPs "
        f"of y, which explode where y passes through zero{missing}"
    )
    return Section(f"Errors, {kind}", how, rows)


def implementations(device: torch.device, pixels: int) -> Section:
    """Return the errors of the suite's own implementations on random images."""
    rows: list[Row] = []
    for form in (Form("folded"), Form("folded", _F16, _F16), Form("folded", _U8)):
        x = inputs_of(form, pixels, device, IMAGES)
        case = Case("fused_transform", _told(form.source), (pixels, 3))
        expected, magnitude, allowed = form.expected(x), form.magnitude(x), form.bound(x)
        for name in OURS:
            implementation = get(case.kernel, name)
            if implementation.unavailable(device, case.torch_dtype) is not None:
                continue
            out = torch.empty(x.shape, dtype=form.target, device=device)
            implementation(x, out=out, transform=form.preset)
            named: Row = {"implementation": name, "x": case.dtype, "y": _told(form.target)}
            rows.append({**named, **errors(out, expected, magnitude, allowed)})
    how = f"{pixels} pixels, {IMAGES}; columns as above; torch_eager divides, the others fold"
    return Section("Errors of the suite's implementations", how, rows)


def speed(scope: Scope) -> Section:
    """Return the times of the forms, a thread a pixel, through the chain of trust."""
    shape = _SMALL_SHAPE if scope.small else _SHAPE
    rows: list[Row] = []
    failed = ""
    for form in TIMED:
        if form.unavailable(scope.device) is not None:
            continue
        try:
            outcome = scope.measure(form.workload(shape, scope.device))
        except RuntimeError as error:
            failed += f"; {reason_of(error)}"
            continue
        seconds, moved = median(outcome.seconds), outcome.result["bytes_moved"]
        copy = outcome.result["peaks"].get("copy_bytes_per_s")
        row: Row = {**_named(form), "time": seconds, "rate": moved / seconds}
        rows.append({**row, "of copy": moved / seconds / copy} if copy else row)
    how = f"Cold medians at {'x'.join(map(str, shape))}, a thread a pixel{failed}"
    return Section("Times", how, rows, {"time": "us", "rate": "GB/s", "of copy": "%"})


def machine_code() -> Section:
    """Return what fast math changes in the instructions; needs no GPU."""
    from kernels import build, sass

    rows: list[Row] = []
    for fast in (False, True):
        options = Form("divided", fast=fast).options
        found = sass.facts(build.compile_cubin(SOURCE, _ARCH, options).code)
        rows += [
            {
                "form": name,
                "fast math": fast,
                "instructions": found[name].instructions,
                "registers": found[name].registers,
                "that flush subnormals": len(found[name].flushes),
            }
            for name in ("divided", "reciprocal", "folded")
        ]
    how = f"fp32 built for {_ARCH}, with and without {FAST_MATH}; slow paths of a division count"
    return Section("Machine code", how, rows)


def run(scope: Scope) -> Findings:
    """Measure errors and times of every form that runs on the scope's device."""
    pixels = _SMALL_PIXELS if scope.small else _PIXELS
    random = attempted(f"Errors, {IMAGES}", lambda: accuracy(scope.device, pixels, IMAGES))
    near = attempted(f"Errors, {NEAR}", lambda: accuracy(scope.device, pixels, NEAR))
    ours = attempted(
        "Errors of the suite's implementations", lambda: implementations(scope.device, pixels)
    )
    times = attempted("Times", lambda: speed(scope))
    code = attempted("Machine code", machine_code)
    rows = [measured_rows(section) for section in (random, near, times)]
    draw = drawing(*rows) if rows[0] and rows[1] else None
    return Findings((random, near, times, ours, code), verdict(*rows), draw)


STUDY = Study(
    "accuracy",
    "Fast math and folding against accuracy",
    "Elementwise optimisation on a cloud GPU (article A): folding the normalisation into the "
    "matrix, `x @ (M/std) - (mean/std) @ M`, gains about 40 % in speed and is used as if it "
    "computed the same; `--use_fast_math` and FP16 are weighed against accuracy, without figures.",
    run,
)
