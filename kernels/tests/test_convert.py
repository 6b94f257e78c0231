"""Conversions, bit for bit, against NumPy, torch and the definition of each rounding."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from kernels import registry
from kernels.convert.contract import ROUNDINGS
from kernels.convert.reference import reference
from kernels.implementation import Implementation
from kernels.tests.guarded import check
from kernels.tests.problems import SMALL, large_lengths, skip_unless_available
from kernels.tolerances import EXACT

HALVES = (torch.float16, torch.bfloat16)
VECTOR = registry.get("convert", "cuda_vector")
EVERY = pytest.mark.parametrize(
    "implementation", [pytest.param(i, id=i.name) for i in registry.implementations("convert")]
)
ROUNDED = pytest.mark.parametrize("rounding", ROUNDINGS)
TARGETS = pytest.mark.parametrize("to", HALVES, ids=["f16", "bf16"])


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def values(device: torch.device, n: int = (1 << 20) + 1) -> torch.Tensor:
    """Return fp32 values over all exponents, ties of both half types and special ones among them."""
    generator = torch.Generator(device=device).manual_seed(5)
    bits = torch.randint(-(2**31), 2**31 - 1, (n,), generator=generator, device=device)
    bits[1::5] &= ~0x1FFF  # fp16's own values
    bits[2::5] = (bits[2::5] & ~0x1FFF) | 0x1000  # halfway between two of fp16
    bits[3::5] = (bits[3::5] & ~0xFFFF) | 0x8000  # halfway between two of bf16
    x = bits.to(torch.int32).view(torch.float32).clone()
    x[4::7] = torch.randn(x[4::7].shape, generator=generator, device=device) * 1e-5
    x[5::11] = torch.randn(x[5::11].shape, generator=generator, device=device) * 3e4
    return x


@ROUNDED
@TARGETS
def test_all_values_convert_bit_for_bit(
    to: torch.dtype, rounding: str, device: torch.device
) -> None:
    skip_unless_available(VECTOR, device, torch.float32)
    x = values(device)
    expected = reference(x, name(to), rounding)
    options = {"to": name(to), "rounding": rounding}
    check(VECTOR, [x], expected, EXACT, out_dtype=to, parameters=options)


@EVERY
@TARGETS
def test_rounding_to_nearest_is_torchs(
    implementation: Implementation, to: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, torch.float32)
    x = values(device, 100_003)
    found = implementation(x, to=name(to))
    assert torch.equal(found.nan_to_num(7.0), x.to(to).nan_to_num(7.0))
    assert torch.equal(found.signbit()[~found.isnan()], x.signbit()[~found.isnan()])


def test_rounding_to_nearest_is_numpys() -> None:
    x = values(torch.device("cpu"), 100_003).numpy()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = x.astype(np.float16)
    found = VECTOR(x, to="float16")
    same = found.view(np.uint16) == expected.view(np.uint16)
    assert (same | np.isnan(expected)).all()


@TARGETS
def test_the_other_roundings_bracket_the_value(to: torch.dtype, device: torch.device) -> None:
    skip_unless_available(VECTOR, device, torch.float32)
    x = values(device, 100_003)
    x = x[~x.isnan()]
    wide = x.double()
    found = {r: VECTOR(x, to=name(to), rounding=r).double() for r in ROUNDINGS}
    assert (found["rd"] <= wide).all()
    assert (found["ru"] >= wide).all()
    assert (found["rz"].abs() <= wide.abs()).all()
    between = (found["rn"] == found["rd"]) | (found["rn"] == found["ru"])
    assert between.all()
    exact = x.to(to).double() == wide
    assert (found["rd"][exact] == found["ru"][exact]).all()


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("rn", [65504.0, math.inf, -math.inf, 0.0, 2048.0, 2052.0, -2048.0]),
        ("rz", [65504.0, 65504.0, -65504.0, 0.0, 2048.0, 2050.0, -2048.0]),
        ("ru", [math.inf, math.inf, -65504.0, 2.0**-24, 2050.0, 2052.0, -2048.0]),
        ("rd", [65504.0, 65504.0, -math.inf, 0.0, 2048.0, 2050.0, -2050.0]),
    ],
)
def test_known_values(rounding: str, expected: list[float], device: torch.device) -> None:
    skip_unless_available(VECTOR, device, torch.float32)
    x = torch.tensor([65519.0, 65520.0, -1e6, 1e-9, 2049.0, 2051.0, -2049.0], device=device)
    assert VECTOR(x, to="float16", rounding=rounding).tolist() == expected


@EVERY
@TARGETS
def test_widening_changes_nothing(
    implementation: Implementation, to: torch.dtype, device: torch.device
) -> None:
    skip_unless_available(implementation, device, to)
    every = torch.arange(1 << 16, dtype=torch.int32, device=device).to(torch.int16).view(to)
    found = implementation(every, to="float32")
    assert torch.equal(found.nan_to_num(7.0), every.float().nan_to_num(7.0))
    assert torch.equal(found.isnan(), every.isnan())


@pytest.mark.parametrize(
    ("source", "to"),
    [
        (torch.float32, torch.float16), (torch.float32, torch.bfloat16),
        (torch.float16, torch.float32), (torch.bfloat16, torch.float32),
    ],
)  # fmt: skip
def test_lengths_and_offsets(source: torch.dtype, to: torch.dtype, device: torch.device) -> None:
    skip_unless_available(VECTOR, device, source)
    x = values(device).to(source)
    options = {"to": name(to), "rounding": "rz"}
    expected = reference(x, name(to), "rz")
    for n in (*SMALL, *large_lengths(device)):
        check(VECTOR, [x[:n]], expected[:n], EXACT, out_dtype=to, parameters=options)
    n = 4099
    for offset, output_offset in product(range(16 // source.itemsize), range(16 // to.itemsize)):
        check(
            VECTOR,
            [x[:n]],
            expected[:n],
            EXACT,
            out_dtype=to,
            input_offsets=[offset],
            output_offset=output_offset,
            parameters=options,
        )


def test_what_is_no_conversion_is_refused(device: torch.device) -> None:
    x = torch.ones(8, device=device)
    for bad, to in ((x, "float32"), (x.half(), "bfloat16"), (x.double(), "float16")):
        with pytest.raises(ValueError, match=r"expected float32 to a half type, or"):
            VECTOR(bad, to=to)
    with pytest.raises(ValueError, match="rounding one of rn, rz, ru, rd"):
        VECTOR(x, rounding="up")
    with pytest.raises(ValueError, match=r"out is \[8\] bfloat16 .*expected \[8\] float16"):
        VECTOR(x, out=torch.empty(8, dtype=torch.bfloat16, device=device))
    with pytest.raises(ValueError, match="out is the memory of x"):
        VECTOR(x, out=x.view(torch.float16)[:8])
    with pytest.raises(ValueError, match="out overlaps x by a part"):
        VECTOR(x, out=x.view(torch.float16)[8:])
    with pytest.raises(ValueError, match="torch only rounds to nearest"):
        registry.get("convert", "torch")(x, rounding="rz")
