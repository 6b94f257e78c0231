"""Comparison with a float64 reference that knows NaN, infinities and the sign of zero."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import torch

_CHUNK = 1 << 24
"""Elements compared at a time: keeps the float64 temporaries near 1 GiB."""


@dataclass(frozen=True)
class Comparison:
    """Outcome of one comparison.

    `worst_error` is the largest absolute error where both values are finite (against the rounded
    reference where the bound is 0), `bound` the error allowed at that element, `worst_ratio` the
    largest error over its bound (None where the bound is 0 everywhere). `wrong` counts elements
    beyond their bound or of another class.
    """

    wrong: int
    count: int
    worst_error: float
    bound: float
    worst_ratio: float | None
    detail: str

    @property
    def passed(self) -> bool:
        """Whether every element is right."""
        return self.wrong == 0


def compare(
    actual: torch.Tensor,
    expected: torch.Tensor,
    bound: float | torch.Tensor,
    *,
    zero_sign: bool = False,
) -> Comparison:
    """Compare a result with its float64 reference, element by element.

    NaN equals NaN, an infinity equals the same infinity; a reference beyond the output's range
    counts as infinity there. A bound of 0 demands the reference rounded to the output's type. With
    `zero_sign` a zero must have the sign that the reference has when rounded to zero.

    Real and imaginary part of a complex number are held against the bound each, and count as two
    elements. A bool is right as its byte 0 or 1: any other reads as true, though nobody wrote it.

    Shapes: `expected`, and `bound` where it is a tensor, have the shape of `actual`.

    Raises ValueError when they do not.
    """
    for name, other in (("reference", expected), ("bound", bound)):
        if isinstance(other, torch.Tensor) and other.dim() and other.shape != actual.shape:
            raise ValueError(
                f"cannot compare: the {name} has shape {tuple(other.shape)}, the output "
                f"{tuple(actual.shape)}; both must be the same"
            )
    if actual.is_complex():
        actual, bound = torch.view_as_real(actual), _for_both_parts(bound)
        expected = torch.view_as_real(expected.to(torch.complex128).resolve_conj())
    elif actual.dtype == torch.bool:
        actual = actual.view(torch.uint8)
    flat, reference = actual.reshape(-1), expected.reshape(-1)
    limit = bound.reshape(-1) if isinstance(bound, torch.Tensor) and bound.dim() else bound
    parts = [
        _part(flat, reference, limit, slice(at, at + _CHUNK), zero_sign=zero_sign)
        for at in range(0, flat.numel(), _CHUNK)
    ]
    return _merge(parts, flat, reference)


def _for_both_parts(bound: float | torch.Tensor) -> float | torch.Tensor:
    if not isinstance(bound, torch.Tensor) or not bound.dim():
        return bound
    return torch.stack((bound, bound), dim=-1)


@dataclass(frozen=True)
class _Part:
    wrong: int
    first_wrong: int
    error: float
    bound: float
    ratio: float


def _part(
    flat: torch.Tensor,
    reference: torch.Tensor,
    limit: float | torch.Tensor,
    where: slice,
    *,
    zero_sign: bool,
) -> _Part:
    """Compare one stretch; all its numbers come back in a single transfer."""
    narrow = flat[where]
    ideal = reference[where].to(torch.float64)
    rounded = ideal.to(narrow.dtype)
    exact = isinstance(limit, float) and limit == 0
    if exact and _all_same(narrow, rounded, zero_sign=zero_sign):
        return _Part(0, 0, 0.0, 0.0, 0.0)
    got = narrow.to(torch.float64)
    allowed = torch.as_tensor(
        limit[where] if isinstance(limit, torch.Tensor) and limit.dim() else limit,
        dtype=torch.float64,
        device=got.device,
    ).expand_as(got)
    same = (narrow == rounded) | (got.isnan() & ideal.isnan())
    back = rounded.to(torch.float64)
    error = (got - torch.where(allowed > 0, ideal, back)).abs()
    finite = got.isfinite() & back.isfinite()
    right = same | (finite & (error <= allowed) & (allowed > 0))
    if zero_sign:
        right &= (rounded != 0) | (narrow != 0) | _signed_alike(narrow, rounded)
    error = torch.where(finite, error, 0.0)
    ratio = torch.where((allowed > 0) & finite, error / allowed, 0.0)
    worst = error.argmax()
    numbers = torch.stack(
        [
            (~right).sum().to(torch.float64),
            (~right).to(torch.uint8).argmax().to(torch.float64),
            error[worst],
            allowed[worst],
            ratio.max(),
        ]
    ).tolist()
    return _Part(int(numbers[0]), int(numbers[1]) + where.start, *numbers[2:])


def _all_same(narrow: torch.Tensor, rounded: torch.Tensor, *, zero_sign: bool) -> bool:
    """Whether all elements are equal or both NaN: an exact kernel's usual outcome, told fast."""
    same = narrow == rounded
    if zero_sign:
        same &= _signed_alike(narrow, rounded)
    return bool((same | (narrow.isnan() & rounded.isnan())).all().item())


def _signed_alike(narrow: torch.Tensor, rounded: torch.Tensor) -> torch.Tensor:
    """Return where both have one sign, which torch does not tell of floats of eight bits."""
    if narrow.dtype.itemsize == 1:
        narrow, rounded = narrow.double(), rounded.double()
    return torch.signbit(narrow) == torch.signbit(rounded)


def _merge(parts: list[_Part], flat: torch.Tensor, reference: torch.Tensor) -> Comparison:
    if not parts:
        return Comparison(0, 0, 0.0, 0.0, None, "no elements")
    wrong = sum(part.wrong for part in parts)
    worst = max(parts, key=lambda part: part.error)
    ratio = max(part.ratio for part in parts)
    detail = f"{flat.numel()} elements agree"
    if wrong:
        at = next(part.first_wrong for part in parts if part.wrong)
        got, want = flat[at].item(), reference[at].item()
        detail = f"{wrong} of {flat.numel()} elements wrong, first at {at}: {got!r}, not {want!r}"
    bounded = worst.bound if isfinite(worst.bound) else 0.0
    return Comparison(
        wrong, flat.numel(), worst.error, bounded, ratio if ratio > 0 else None, detail
    )
