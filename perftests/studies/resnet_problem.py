"""A ResNet at a batch and image size: inputs, reference and bound, ready for the chain of trust."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

import torch

from perftests.harness.workload import Inputs, Workload
from perftests.studies.resnet_arithmetic import prepare
from perftests.studies.resnet_bound import DEVIATIONS, Rough, expected
from perftests.studies.resnet_model import RESNET50, Plan, build, macs

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.studies.frame import Scope

SEED = 20261129


class Problem:
    """The model at a batch and image size, in fp16 on a device, and in fp32 as its reference."""

    def __init__(self, scope: Scope, plan: Plan, images: int, size: int) -> None:
        self.device, self.images, self.size, self.plan = scope.device, images, size, plan
        exact = build(plan, SEED)
        self.exact = copy.deepcopy(exact).to(scope.device)
        self.model = exact.half().to(scope.device)
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        prepare(self.model)
        self.flop = 2 * macs(plan, size) * images
        self.sample = self.make_images(SEED)[0]
        self.known: tuple[torch.Tensor, bool, Rough] | None = None

    def of(self, images: int) -> Problem:
        """Return the same model at another batch."""
        other = copy.copy(self)
        other.images, other.flop, other.known = images, self.flop // self.images * images, None
        other.sample = other.make_images(SEED)[0]
        return other

    def make_images(self, seed: int) -> Inputs:
        """Return normal images [N, H, W, 3] in fp16."""
        generator = torch.Generator(device=self.device).manual_seed(seed)
        shape = (self.images, self.size, self.size, 3)
        return (torch.randn(shape, generator=generator, device=self.device).half(),)

    def expected(self, images: torch.Tensor, *, folded: bool) -> Rough:
        """Return logits and variances for images [N, H, W, 3], remembered for the last ones."""
        known = self.known
        if known is None or known[0] is not images or known[1] != folded:
            found = expected(self.exact, channels_first(images), folded=folded)
            self.known = known = (images, folded, found)
        return known[2]

    def workload(
        self, name: str, call: Callable[[torch.Tensor], torch.Tensor], *, folded: bool = False
    ) -> Workload:
        """Return a way to run the model as a workload for the chain of trust.

        `call` takes images [N, 3, H, W]; `folded` says that its weights hold the batch norms.
        """

        def launch(inputs: Inputs, out: torch.Tensor) -> None:
            with torch.no_grad():
                out.copy_(call(channels_first(inputs[0])))

        def bound(inputs: Inputs) -> torch.Tensor:
            variance = self.expected(inputs[0], folded=folded).variance
            return DEVIATIONS * variance.double().sqrt()

        return Workload(
            kernel=name_of(self.plan),
            implementation=re.sub(r"[^a-z0-9]+", "_", name.lower()),
            launch=launch,
            make_inputs=self.make_images,
            reference=lambda inputs: self.expected(inputs[0], folded=folded).value.double(),
            output_shape=(self.images, self.plan.classes),
            output_dtype=torch.float16,
            bytes_moved=self.bytes_moved,
            flop=self.flop,
            bound=bound,
            shape=(self.images, 3, self.size, self.size),
            specials=False,
            source_file="perftests/studies/resnet.py",
            inputs_key=("resnet", self.images, self.size, folded, self.device),
            allocates="a model allocates its activations",
        )

    @property
    def bytes_moved(self) -> int:
        """Images, parameters and logits, each once: activations are the network's own affair."""
        values = self.sample.numel() + self.images * self.plan.classes
        return 2 * (values + sum(int(each.numel()) for each in self.model.parameters()))


def channels_first(images: torch.Tensor) -> torch.Tensor:
    """Return images [N, H, W, C] as [N, C, H, W] without a copy: channels last in memory."""
    return images.permute(0, 3, 1, 2)


def name_of(plan: Plan) -> str:
    """Return the kernel's name in the record."""
    return "resnet50" if plan == RESNET50 else "resnet"
