"""The fused transform as torch has it: two steps or the folded affine form, eager and compiled.

Narrow inputs are computed in fp32 and rounded once, as every implementation does: torch's own type
promotion does it, since the constants are fp32 tensors.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from kernels import first_call
from kernels.cases import Case
from kernels.fused_transform.transform import TakesTransform, Transform, transform_of
from kernels.peers import CompiledImplementation

Constants = tuple[torch.Tensor, ...]
_OF_JIT = (
    "torch.jit compiles within this launch and some after it and does not tell when",
    "torch loads its kernels as they are launched and does not tell when",
)


@cache
def two_step_constants(transform: Transform, device: torch.device) -> Constants:
    """Return mean [C], std [C] and matrix [C, D] in fp32 on a device."""
    return tuple(torch.from_numpy(a).float().to(device) for a in transform.arrays())


@cache
def folded_constants(transform: Transform, device: torch.device) -> Constants:
    """Return weight [C, D] and bias [D] in fp32 on a device."""
    flat = torch.tensor(transform.coefficients, dtype=torch.float32, device=device)
    weight = flat[: transform.channels_in * transform.channels_out]
    return weight.view(transform.channels_in, -1), flat[weight.numel() :]


def _product(x: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor) -> None:
    """Write x @ matrix to `out`, at once where torch can."""
    if x.dtype == out.dtype and out.is_contiguous() and x.is_contiguous():
        torch.mm(x.view(-1, x.shape[-1]), matrix, out=out.view(-1, out.shape[-1]))
    else:
        out.copy_(torch.einsum("...c,cd->...d", x, matrix))


def two_step(
    x: torch.Tensor, out: torch.Tensor, mean: torch.Tensor, std: torch.Tensor, matrix: torch.Tensor
) -> None:
    """Normalise, then multiply: the form that articles start from."""
    _product((x - mean) / std, matrix, out)


def folded(x: torch.Tensor, out: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """Multiply by the folded matrix, then add the folded bias."""
    wide = x.float()
    separate = wide.data_ptr() != out.data_ptr()  # a product cannot be computed in place
    if separate and out.dtype == torch.float32 and out.is_contiguous() and wide.is_contiguous():
        torch.addmm(bias, wide.view(-1, wide.shape[-1]), weight, out=out.view(-1, out.shape[-1]))
    else:
        out.copy_(torch.einsum("...c,cd->...d", wide, weight) + bias)


def _scripted(
    x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor, matrix: torch.Tensor
) -> torch.Tensor:
    return torch.matmul((x - mean) / std, matrix)


def _scripted_out(
    x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor, matrix: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    return torch.matmul((x - mean) / std, matrix, out=out)


@cache
def _script(function: Callable[..., Any]) -> Callable[..., Any]:
    import warnings

    with warnings.catch_warnings():
        # It is here as the peer that it once was; that it is deprecated is known.
        warnings.simplefilter("ignore")
        scripted: Callable[..., Any] = torch.jit.script(function)
    return scripted


def jit(
    x: torch.Tensor, out: torch.Tensor, mean: torch.Tensor, std: torch.Tensor, matrix: torch.Tensor
) -> None:
    """Compute the two steps through torch.jit.script."""
    if out.dtype == torch.float32:
        _script(_scripted_out)(x, mean, std, matrix, out)
    else:
        out.copy_(_script(_scripted)(x, mean, std, matrix))


def _sum_of_channels(channels: Sequence[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
    """Return the product spelt out: a matrix product Inductor would leave to a library."""
    columns = [
        sum((c * weight[k, d] for k, c in enumerate(channels[1:], 1)), channels[0] * weight[0, d])
        for d in range(weight.shape[1])
    ]
    return torch.stack(columns, -1)


def two_step_unrolled(
    x: torch.Tensor, out: torch.Tensor, mean: torch.Tensor, std: torch.Tensor, matrix: torch.Tensor
) -> None:
    """Compute the two steps in a form that Inductor fuses into one kernel."""
    out.copy_(_sum_of_channels(((x - mean) / std).unbind(-1), matrix))


def folded_unrolled(
    x: torch.Tensor, out: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> None:
    """Compute the folded form in a form that Inductor fuses into one kernel."""
    out.copy_(_sum_of_channels(x.float().unbind(-1), weight) + bias)


class FusedTorch(TakesTransform):
    """A function of torch's operations on x, out and the constants that `constants` makes."""

    _function: Callable[..., None]

    def __init__(
        self, *arguments: Any, function: Callable[..., None], constants: Callable[..., Constants]
    ) -> None:
        super().__init__(*arguments)
        self._function = function
        self._constants = constants

    def allocates(self, case: Case) -> str | None:  # noqa: ARG002 - the same at every case
        """Return why calls allocate."""
        return "torch's operations leave their steps, or a product's workspace, in temporaries"

    def first_call(self, call: Callable[[], object]) -> first_call.Parts:
        """Make the first call, whole."""
        if self._function is jit:
            return first_call.whole(call, *_OF_JIT)
        return super().first_call(call)

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        transform = transform_of(parameters.get("transform"))
        with torch.no_grad():
            self._function(inputs[0], out, *self._constants(transform, out.device))


class FusedCompiled(TakesTransform, CompiledImplementation):
    """The same through torch.compile."""

    def __init__(self, *arguments: Any, constants: Callable[..., Constants]) -> None:
        super().__init__(*arguments)
        self._constants = constants

    def allocates(self, case: Case) -> str | None:
        """Return why calls may allocate."""
        return super().allocates(case) or "Inductor may keep the stacked channels in a buffer"

    def _run(
        self, inputs: Sequence[torch.Tensor], out: torch.Tensor, parameters: Mapping[str, Any]
    ) -> None:
        transform = transform_of(parameters.get("transform"))
        with torch.no_grad():
            self._compiled(inputs[0], out, *self._constants(transform, out.device))
