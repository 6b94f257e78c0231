"""What conversion means: a value rounded to a narrower format by one of four rules."""

import torch


def reference(x: torch.Tensor, to: str, rounding: str) -> torch.Tensor:
    """Return in float64 the values that `x` becomes; NaN stays NaN, widening changes nothing.

    Signs are kept, that of a zero too (IEEE 754, 4.3 and 6.3).

    Each value is divided by the unit of its binade in the target format, made whole by the rule,
    and multiplied back: all exact in float64. Overflow follows IEEE 754, 4.3: rn goes to infinity
    from half a unit past the largest number, rz never, ru upwards only, rd downwards only.
    """
    wide = x.double()
    info = torch.finfo(getattr(torch, to))
    if torch.finfo(x.dtype).bits <= info.bits:
        return wide
    magnitude = wide.abs().nan_to_num(nan=0.0, posinf=info.max).clamp(min=info.tiny)
    _, exponent = torch.frexp(magnitude)  # magnitude in [2^(exponent-1), 2^exponent)
    unit = torch.ldexp(torch.full_like(wide, info.eps), exponent - 1)
    whole = {"rn": torch.round, "rz": torch.trunc, "ru": torch.ceil, "rd": torch.floor}[rounding]
    rounded = whole(wide / unit) * unit
    over = rounded.abs() > info.max
    stays = {
        "rn": torch.zeros_like(over),
        "rz": torch.ones_like(over),
        "ru": rounded < 0,
        "rd": rounded > 0,
    }[rounding]
    limit = torch.where(stays, info.max, torch.inf).copysign(wide)
    return torch.where(over & wide.isfinite(), limit.double(), rounded)
