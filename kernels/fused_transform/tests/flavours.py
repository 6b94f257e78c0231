"""What the tests compute on: pairs of types, transforms that are not symmetric, and references."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pytest
import torch

from kernels import registry
from kernels.cases import Case, Scalar
from kernels.fused_transform import DEFINITION, PRESETS, Transform
from kernels.fused_transform import alone as implementation_of
from kernels.fused_transform.cuda_impl import FusedCuda, host_options
from kernels.fused_transform.variants import DEFAULTS, Types, Variant
from kernels.implementation import Implementation

IMPLEMENTATIONS = registry.implementations(DEFINITION.name)
CUDA = tuple(i for i in IMPLEMENTATIONS if isinstance(i, FusedCuda))
VECTOR = IMPLEMENTATIONS[-1]
TRITON = registry.get(DEFINITION.name, "triton")


def alone(variant: Variant) -> FusedCuda:
    """Return an implementation of one variant, named after its kernel."""
    return implementation_of(f"alone_{variant.kernel}", variant)


OURS = (*CUDA, alone(DEFAULTS["warp"]))


class Flavour(NamedTuple):
    """Types and a transform under a short name."""

    name: str
    source: torch.dtype
    target: torch.dtype
    transform: str

    @property
    def channels(self) -> tuple[int, int]:
        transform = PRESETS.get(self.transform) or FOUR_TO_TWO
        return transform.channels_in, transform.channels_out

    @property
    def types(self) -> Types:
        return Types(self.source, self.target, *self.channels)

    @property
    def parameters(self) -> dict[str, Scalar]:
        return {"transform": self.transform, "dtype": str(self.target).removeprefix("torch.")}

    def case(self, shape: tuple[int, ...]) -> Case:
        name = str(self.source).removeprefix("torch.")
        return Case(DEFINITION.name, name, shape, parameters=self.parameters)


# An even D: y reaches a boundary only from every other element.
FOUR_TO_TWO = Transform.of(
    (0.1, 0.2, 0.3, 0.4),
    (0.5, 0.25, 2.0, 1.5),
    ((1.0, -2.0), (0.5, 3.0), (-1.5, 0.25), (4.0, 0.125)),
)
F32, F16, U8 = torch.float32, torch.float16, torch.uint8
FLAVOURS = (
    Flavour("fp32", F32, F32, "imagenet_ycbcr"),
    Flavour("fp16", F16, F16, "imagenet_ycbcr"),
    Flavour("bytes-fp32", U8, F32, "imagenet_ycbcr_255"),
    Flavour("bytes-fp16", U8, F16, "imagenet_ycbcr_255"),
)
OTHERS = (
    Flavour("grey", F32, F32, "grey_bt601"),
    Flavour("four-two", F32, F32, str(FOUR_TO_TWO)),
)


def host_builds() -> Iterator[tuple[str, ...]]:
    """Yield the options of every CPU build that the tests use."""
    for flavour in (*FLAVOURS, *OTHERS):
        yield from {
            host_options(tuple(variants), flavour.types)
            for variants in (i.variants(flavour.types) for i in CUDA)
        }


class Problem(NamedTuple):
    """Images [1, 1, pixels, C] with their reference and its bound."""

    x: torch.Tensor
    expected: torch.Tensor
    bound: torch.Tensor

    def first(self, pixels: int) -> "Problem":
        bound = self.bound[:, :, :pixels]
        return Problem(self.x[:, :, :pixels], self.expected[:, :, :pixels], bound)


@cache
def problem(flavour: Flavour, device: torch.device, pixels: int = 2051) -> Problem:
    """Return random images, the same on every call."""
    case = flavour.case((1, 1, pixels, flavour.channels[0]))
    generator = torch.Generator(device=device).manual_seed(1964)
    (x,) = DEFINITION.make_inputs(case, device, generator)
    bound = DEFINITION.bound(case, (x,))
    assert isinstance(bound, torch.Tensor)
    return Problem(x, DEFINITION.reference(x, **flavour.parameters), bound)


def pairs(
    implementations: Sequence[Implementation] = IMPLEMENTATIONS,
    flavours: tuple[Flavour, ...] = FLAVOURS,
) -> pytest.MarkDecorator:
    """Return the parametrisation of a test by implementation and flavour."""
    found = [pytest.param(i, f, id=f"{i.name}-{f.name}") for i in implementations for f in flavours]
    return pytest.mark.parametrize(("implementation", "flavour"), found)
