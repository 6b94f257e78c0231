"""The ways to compute a ResNet's steps: as torch has them, and with our fused kernels.

The kernels are reached through their operators in torch's library (`kernels/operators.py`), so that
torch.compile and CUDA graphs take them as they are. Tensors are channels-last: an [N, C, H, W]
tensor whose memory is [N, H, W, C], which is what the kernels take.
"""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it

from kernels.bn_relu_add.reference import fold
from kernels.registry import get

if TYPE_CHECKING:
    from torch import nn

    from perftests.studies.resnet_model import ResNet, Unit

_KERNEL = "cuda_vector"


class Stock:
    """Eager torch, in place where it can be."""

    def bn_relu(self, unit: Unit, x: torch.Tensor) -> torch.Tensor:
        """Return convolution, batch norm and ReLU: three kernels."""
        return F.relu_(unit(x))

    def bn(self, unit: Unit, x: torch.Tensor) -> torch.Tensor:
        """Return convolution and batch norm: two kernels."""
        result: torch.Tensor = unit(x)
        return result

    def bn_add_relu(self, unit: Unit, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return convolution, batch norm, sum and ReLU: four kernels."""
        y: torch.Tensor = unit(x)
        y += residual
        return F.relu_(y)

    def max_pool(self, x: torch.Tensor) -> torch.Tensor:
        """Return the maxima of 3x3 windows, two apart."""
        return F.max_pool2d(x, 3, 2, 1)

    def head(self, linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        result: torch.Tensor = linear(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return result


class Fused(Stock):
    """Batch norm and ReLU, with or without a residual, in one pass by bn_relu_add.

    Without a residual the kernel gets the input as its residual too, and a scale less by one: an
    element's second read finds it in the cache.
    """

    def bn_relu(self, unit: Unit, x: torch.Tensor) -> torch.Tensor:
        """Return convolution, and batch norm with ReLU: two kernels."""
        y = unit.conv(x)
        return _bn_relu_add(y, y, unit.scale_less_one, unit.shift)

    def bn_add_relu(self, unit: Unit, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return convolution, and batch norm with sum and ReLU: two kernels."""
        return _bn_relu_add(unit.conv(x), residual, unit.scale, unit.shift)


class Folded(Stock):
    """Batch norm folded into the convolutions, ReLU by scale_relu, block ends by bn_relu_add.

    A scale a channel goes into the weights; of it a power of two a layer stays with scale_relu, so
    that the folded weights keep to the range in which fp16 is precise. At the end of a block the
    shifts, that of the shortcut too, go into bn_relu_add's table.
    """

    def bn_relu(self, unit: Unit, x: torch.Tensor) -> torch.Tensor:
        """Return convolution, its bias, and scale with ReLU: three kernels."""
        y = _conv(unit, x, unit.folded_weight, unit.folded_bias)
        ops = torch.ops.bandwatch
        return _nchw(getattr(ops, f"scale_relu_{_KERNEL}")(_nhwc(y), unit.power))

    def bn(self, unit: Unit, x: torch.Tensor) -> torch.Tensor:
        """Return the convolution alone: the shift is added at the end of the block."""
        return _conv(unit, x, unit.end_weight, None)

    def bn_add_relu(self, unit: Unit, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return convolution, and shift with sum and ReLU: two kernels."""
        y = _conv(unit, x, unit.end_weight, None)
        return _bn_relu_add(y, residual, unit.ones, unit.end_shift)


def prepare(model: ResNet) -> None:
    """Give each unit the tables and folded weights that `Fused` and `Folded` use."""
    for kernel in ("bn_relu_add", "scale_relu"):
        get(kernel, _KERNEL)  # makes its operators known
    for unit in model.units():
        scale, shift = _affine(unit)
        weight = unit.conv.weight.detach().float() * scale.view(-1, 1, 1, 1)
        # The largest of the weights comes to lie between one half and one.
        power = 2.0 ** ceil(log2(float(weight.abs().max())))
        unit.scale, unit.shift, unit.scale_less_one = scale, shift, scale - 1
        unit.power = power
        unit.folded_weight = _like_weight(unit, weight / power)
        unit.folded_bias = (shift / power).to(unit.conv.weight.dtype)
        unit.end_weight = _like_weight(unit, weight)
        unit.ones, unit.end_shift = torch.ones_like(scale), shift
    for block in model.bottlenecks():
        if block.shortcut is not None:
            block.third.end_shift = block.third.shift + block.shortcut.shift


def _affine(unit: Unit) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the fp32 scale and shift [C] that a unit's batch norm amounts to."""
    bn: Any = unit.bn
    return fold(bn.weight.detach(), bn.bias.detach(), bn.running_mean, bn.running_var, bn.eps)


def _like_weight(unit: Unit, weight: torch.Tensor) -> torch.Tensor:
    """Return a weight in the dtype and memory format of the unit's own."""
    return weight.to(unit.conv.weight.dtype).contiguous(memory_format=torch.channels_last)


def _conv(
    unit: Unit, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    return F.conv2d(x, weight, bias, unit.conv.stride, unit.conv.padding)


def _bn_relu_add(
    x: torch.Tensor, residual: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor
) -> torch.Tensor:
    operator = getattr(torch.ops.bandwatch, f"bn_relu_add_{_KERNEL}")
    return _nchw(operator(_nhwc(x), _nhwc(residual), scale, shift, "nhwc"))


def _nhwc(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def _nchw(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)
