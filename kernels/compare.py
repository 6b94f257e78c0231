"""Whether an output agrees with its float64 reference, and how far from it the worst element is."""

from dataclasses import dataclass

import torch

from kernels.tolerances import EXACT


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found. `wrong` counts elements; the worst error is in the output's unit.

    `worst_ratio` is the largest error over its bound; for an exact bound it is 0 or infinity.
    """

    passed: bool
    wrong: int
    worst_error: float
    worst_ratio: float
    detail: str


def compare(
    actual: torch.Tensor,
    expected: torch.Tensor,
    bound: torch.Tensor | float,
    *,
    zero_sign: bool = False,
) -> Comparison:
    """Compare an output with its float64 reference under an absolute bound, one or one an element.

    NaN must stand exactly where the reference has NaN, infinities where rounding gives infinity.
    Under the bound 0 each element must equal the reference rounded to the output's dtype. -0.0
    equals 0.0 unless `zero_sign` demands of a zero the sign of a reference that rounds to zero. A
    bound that is NaN or negative allows nothing, an infinite one no missing infinity.
    """
    if actual.shape != expected.shape:
        shapes = f"the output is {list(actual.shape)}, the reference {list(expected.shape)}"
        return Comparison(False, max(actual.numel(), 1), float("inf"), float("inf"), shapes)
    rounded = expected.to(actual.dtype)
    signed: torch.Tensor | bool = _signed_alike(actual, rounded) if zero_sign else True
    if not isinstance(bound, torch.Tensor) and bound == EXACT:
        same = (actual == rounded) & signed
        if bool((same | (actual.isnan() & rounded.isnan())).all()):
            return Comparison(True, 0, 0.0, 0.0, "exact")
        allowed = torch.zeros_like(expected)
        wanted = rounded.double()
    else:
        limit = torch.as_tensor(bound, dtype=torch.float64, device=expected.device)
        allowed = limit.expand(expected.shape)
        wanted = torch.where(rounded.isinf() | expected.isinf(), rounded.double(), expected)
    wide = actual.double()
    error = (wide - wanted).abs()
    right = (error <= allowed) & error.isfinite()  # no bound, not even an infinite one, covers that
    # Equal infinities have no difference; a finite reference may round to one within its bound.
    right |= (wide == wanted) & wide.isinf() & (allowed >= 0)
    near = (expected + allowed.copysign(expected)).to(actual.dtype)
    right |= wide.isinf() & (near.double() == wide) & (allowed > 0)
    right |= wide.isnan() & expected.isnan()
    right &= signed
    return _summary(actual, expected, right, error, allowed)


def _signed_alike(actual: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
    """Return where it is not two zeros of unlike signs that stand side by side."""
    return (actual != 0) | (rounded != 0) | (actual.signbit() == rounded.signbit())


def _summary(
    actual: torch.Tensor,
    expected: torch.Tensor,
    right: torch.Tensor,
    error: torch.Tensor,
    allowed: torch.Tensor,
) -> Comparison:
    wrong = int(right.numel() - right.sum())
    # An error of NaN or infinity stands at a NaN or an infinity: right or wrong, but no distance.
    error = torch.where(error.isfinite(), error, 0.0)
    worst = float(error.max()) if error.numel() else 0.0
    worst_ratio = float((error / allowed).nan_to_num(0.0).max()) if error.numel() else 0.0
    if not wrong:
        return Comparison(True, 0, worst, worst_ratio, f"worst error {worst:.3g}")
    first = int((~right).flatten().to(torch.uint8).argmax())
    got, want = actual.flatten()[first].item(), expected.flatten()[first].item()
    detail = (
        f"{wrong} of {right.numel()} elements are wrong, the first at flat index {first}: "
        f"{got!r}, expected {want!r} within {allowed.flatten()[first].item():.3g}"
    )
    return Comparison(False, wrong, float("inf") if worst == 0 else worst, float("inf"), detail)
