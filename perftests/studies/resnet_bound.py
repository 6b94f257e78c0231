"""How far fp16 inference may be from fp32: each rounding followed to the logits.

Every value that an fp16 network stores is rounded to nearest, which moves it by at most half a unit
in the last place: a variance of a third of its square. Roundings are taken as independent, so that
a convolution carries variances by its squared weights. The bound is a multiple of the standard
deviation that arrives: 64000 logits leave a normal distribution's eight standard deviations once in
10^10 times, and what correlation adds has room.

Source of the model: Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis",
SIAM J. Sci. Comput. 41 (2019).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it

from kernels.tolerances import half_ulp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from perftests.studies.resnet_model import ResNet, Unit

DEVIATIONS = 8.0


class Rough(NamedTuple):
    """A value in fp32 and the variance of the fp16 network's error in it."""

    value: torch.Tensor
    variance: torch.Tensor


class Rounding:
    """The network in fp32 with its errors in fp16 beside it.

    Rounded are convolutions, batch norms and sums, as eager torch stores them; what a fused kernel
    does not store is allowed for all the same. `folded` adds that weights and biases with the batch
    norm in them are rounded once more. Those errors are the same in every image and place, so that
    the mean over a plane does not lessen them.
    """

    def __init__(self, *, folded: bool) -> None:
        self._folded = folded

    def bn_relu(self, unit: Unit, x: Rough) -> Rough:
        """Return convolution, batch norm and ReLU."""
        return _relu(self.bn(unit, x))

    def bn(self, unit: Unit, x: Rough) -> Rough:
        """Return convolution and batch norm, both rounded."""
        conv, bn = unit.conv, unit.bn
        assert bn.running_var is not None
        assert bn.running_mean is not None
        scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        squared = conv.weight.square()
        value = conv(x.value)
        variance = _like(conv, x.variance, squared) + _rounded(value)
        if self._folded:
            rounding = half_ulp(conv.weight.double(), torch.float16).float().square() / 3
            variance = variance + _like(conv, x.value.square(), rounding)
        after = bn(value)
        variance = variance * scale.square().view(1, -1, 1, 1) + _rounded(after)
        if self._folded:
            shift = bn.bias - bn.running_mean * scale
            variance = variance + _rounded(shift).view(1, -1, 1, 1)
        return Rough(after, variance)

    def bn_add_relu(self, unit: Unit, x: Rough, residual: Rough) -> Rough:
        """Return convolution, batch norm, sum and ReLU."""
        y = self.bn(unit, x)
        total = y.value + residual.value
        return _relu(Rough(total, y.variance + residual.variance + _rounded(total)))

    def max_pool(self, x: Rough) -> Rough:
        """Return the maxima, with the largest error of each window."""
        return Rough(F.max_pool2d(x.value, 3, 2, 1), F.max_pool2d(x.variance, 3, 2, 1))

    def head(self, linear: nn.Linear, x: Rough) -> Rough:
        """Return the logits; the product may be summed in parts, so it is rounded twice."""
        places = 1 if self._folded else x.value[0, 0].numel()
        mean = x.value.mean((2, 3))
        variance = x.variance.mean((2, 3)) / places + _rounded(mean)
        logits = linear(mean)
        return Rough(logits, F.linear(variance, linear.weight.square()) + 2 * _rounded(logits))


def _like(conv: nn.Conv2d, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x, weight, None, conv.stride, conv.padding)


def _rounded(value: torch.Tensor) -> torch.Tensor:
    """Return the variance that rounding to fp16 adds."""
    return half_ulp(value, torch.float16).square() / 3


def _relu(x: Rough) -> Rough:
    """Return ReLU: an error survives where the value does, or where it could make it survive."""
    alive = x.value > -DEVIATIONS * x.variance.sqrt()
    return Rough(x.value.clamp_min(0), torch.where(alive, x.variance, 0.0))


@contextmanager
def full_fp32() -> Iterator[None]:
    """Let products of fp32 be products of fp32, whatever the defaults."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark
    cudnn.allow_tf32 = matmul.allow_tf32 = cudnn.benchmark = False
    try:
        yield
    finally:
        cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark = before


@torch.no_grad()
def expected(model: ResNet, images: torch.Tensor, *, folded: bool) -> Rough:
    """Return the fp32 logits of a model in fp32 and the variance of an fp16 one's error."""
    with full_fp32():
        value = images.float()
        found = model(Rounding(folded=folded), Rough(value, torch.zeros_like(value)))
    assert isinstance(found, Rough)
    return found
