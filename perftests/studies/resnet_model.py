"""ResNet-50 in plain torch: random weights from a seed, batch norm of inference.

The network is written once and walks over an arithmetic, which says how a convolution with its
batch norm, ReLU and sum is computed: see `resnet_arithmetic` and `resnet_bound`.

Source: He et al., "Deep Residual Learning for Image Recognition" (2016), with the stride in the 3x3
convolution, as is usual since (ResNet v1.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPANSION = 4


@dataclass(frozen=True)
class Plan:
    """Blocks a stage, channels of the first stage and classes of a network."""

    layers: tuple[int, ...]
    width: int
    classes: int


RESNET50 = Plan((3, 4, 6, 3), 64, 1000)


class Arithmetic(Protocol):
    """How the network's steps are computed; values may be tensors or anything else."""

    def bn_relu(self, unit: Unit, x: Any) -> Any:
        """Return convolution, batch norm and ReLU."""

    def bn(self, unit: Unit, x: Any) -> Any:
        """Return convolution and batch norm."""

    def bn_add_relu(self, unit: Unit, x: Any, residual: Any) -> Any:
        """Return convolution and batch norm, plus the residual, and ReLU."""

    def max_pool(self, x: Any) -> Any:
        """Return the maxima of 3x3 windows, two apart."""

    def head(self, linear: nn.Linear, x: Any) -> Any:
        """Return the logits of the mean over each plane."""


class Unit(nn.Module):
    """A convolution without bias and the batch norm after it.

    What follows from them and other arithmetics use, `resnet_arithmetic.prepare` adds: the scale
    and shift [C] of the batch norm in fp32, weights with them, and a power of two.
    """

    scale: torch.Tensor
    shift: torch.Tensor
    scale_less_one: torch.Tensor
    ones: torch.Tensor
    end_shift: torch.Tensor
    folded_weight: torch.Tensor
    folded_bias: torch.Tensor
    end_weight: torch.Tensor
    power: float

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return convolution and batch norm."""
        result: torch.Tensor = self.bn(self.conv(x))
        return result


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut."""

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        outputs = planes * _EXPANSION
        self.first = Unit(inputs, planes, 1, 1)
        self.second = Unit(planes, planes, 3, stride)
        self.third = Unit(planes, outputs, 1, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = Unit(inputs, outputs, 1, stride) if changes else None

    def forward(self, arithmetic: Arithmetic, x: Any) -> Any:
        """Return the block's output."""
        y = arithmetic.bn_relu(self.second, arithmetic.bn_relu(self.first, x))
        residual = x if self.shortcut is None else arithmetic.bn(self.shortcut, x)
        return arithmetic.bn_add_relu(self.third, y, residual)


class ResNet(nn.Module):
    """The network: images [N, 3, H, W] to logits [N, classes]."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.stem = Unit(3, plan.width, 7, 2)
        blocks, inputs = [], plan.width
        for stage, count in enumerate(plan.layers):
            planes = plan.width << stage
            for index in range(count):
                stride = 2 if stage and not index else 1
                blocks.append(Bottleneck(inputs, planes, stride))
                inputs = planes * _EXPANSION
        self.blocks = nn.ModuleList(blocks)
        self.linear = nn.Linear(inputs, plan.classes)

    def forward(self, arithmetic: Arithmetic, x: Any) -> Any:
        """Return the logits as the arithmetic computes them."""
        x = arithmetic.max_pool(arithmetic.bn_relu(self.stem, x))
        for block in self.blocks:
            x = block(arithmetic, x)
        return arithmetic.head(self.linear, x)

    def bottlenecks(self) -> Iterator[Bottleneck]:
        """Yield the blocks in order."""
        return (block for block in self.blocks if isinstance(block, Bottleneck))

    def units(self) -> Iterator[Unit]:
        """Yield every convolution with its batch norm."""
        return (module for module in self.modules() if isinstance(module, Unit))


def build(plan: Plan, seed: int) -> ResNet:
    """Return a network in evaluation mode on the CPU whose parameters are fp16 values held in fp32.

    Weights are normal with variance 2 / fan-in (He et al., "Delving Deep into Rectifiers", 2015);
    batch norms look trained, with small scales at the end of each block, so that the activations
    of sixteen blocks stay far from the end of fp16's range.
    """
    generator = torch.Generator().manual_seed(seed)
    model = ResNet(plan).eval()
    with torch.no_grad():
        ends = {id(block.third) for block in model.bottlenecks()}
        for unit in model.units():
            weight = unit.conv.weight
            weight.normal_(0, sqrt(2 / weight[0].numel()), generator=generator)
            low, high = (0.2, 0.4) if id(unit) in ends else (0.8, 1.2)
            unit.bn.weight.uniform_(low, high, generator=generator)
            unit.bn.bias.normal_(0, 0.1, generator=generator)
            _buffer(unit.bn.running_mean).normal_(0, 0.1, generator=generator)
            _buffer(unit.bn.running_var).uniform_(0.8, 1.2, generator=generator)
        model.linear.weight.normal_(0, 0.01, generator=generator)
        model.linear.bias.normal_(0, 0.1, generator=generator)
    return model.half().float()


def _buffer(tensor: torch.Tensor | None) -> torch.Tensor:
    if tensor is None:
        raise TypeError("a batch norm without running statistics cannot be one of inference")
    return tensor


def macs(plan: Plan, size: int) -> int:
    """Return the multiply-adds of one image of `size` x `size` pixels, convolutions and linear."""
    with torch.device("meta"):
        model = ResNet(plan)
    side = _half(size)
    total = _unit_macs(model.stem, side)
    side = _half(side)
    for block in model.bottlenecks():
        after = side if block.second.conv.stride == (1, 1) else _half(side)
        total += _unit_macs(block.first, side) + _unit_macs(block.second, after)
        total += _unit_macs(block.third, after)
        if block.shortcut is not None:
            total += _unit_macs(block.shortcut, after)
        side = after
    return total + model.linear.weight.numel()


def _half(side: int) -> int:
    """Return the side after a stride of two with the paddings used here."""
    return (side + 1) // 2


def _unit_macs(unit: Unit, side: int) -> int:
    return int(unit.conv.weight.numel()) * side * side
