"""The forms of the fused transform whose accuracy is studied: what accuracy.cu builds, launches."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from kernels import host
from kernels.cases import Case
from kernels.fused_transform.reference import reference
from kernels.fused_transform.tolerance import error_bound
from kernels.fused_transform.transform import PRESETS
from perftests.harness.workload import Workload

if TYPE_CHECKING:
    from kernels.cuda import Function
    from kernels.fused_transform.transform import Transform
    from perftests.harness.workload import Inputs

SOURCE = Path(__file__).parent / "accuracy.cu"
THREADS = 128  # of accuracy.cu
FAST_MATH = "--use_fast_math"
UNIT = 2.0**-24
_KERNEL, _C, _D = "fused_transform", 3, 3
_NAMES = {
    torch.float32: "float",
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.uint8: "Byte",
}
_FAST_DIVISION = 11 / 8
"""A division of fast math errs by 2 ULP (CUDA programming guide), three units more of eight."""


@dataclass(frozen=True)
class Form:
    """One way to compute it: a kernel of accuracy.cu, its types, and how it is built.

    `folded_in` is the precision in which the host folds the constants.
    """

    kernel: str
    source: torch.dtype = torch.float32
    target: torch.dtype = torch.float32
    fast: bool = False
    folded_in: str = "float64"

    @property
    def name(self) -> str:
        """Name of the implementation in the record."""
        single = "_in_fp32" if self.folded_in == "float32" else ""
        return f"study_{self.kernel}{single}{'_fast_math' if self.fast else ''}"

    @property
    def half_arithmetic(self) -> bool:
        """Whether every step is rounded to the output's type."""
        return self.kernel.startswith("half_")

    @property
    def preset(self) -> str:
        """The transform's name, in the units of x."""
        return "imagenet_ycbcr_255" if self.source == torch.uint8 else "imagenet_ycbcr"

    @property
    def transform(self) -> Transform:
        """The transform, in the units of x."""
        return PRESETS[self.preset]

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options of accuracy.cu."""
        halves = self.source == self.target and self.target.itemsize == 2
        return (
            f"-DIN={_NAMES[self.source]}",
            f"-DOUT={_NAMES[self.target]}",
            *(["-DHALF_ARITHMETIC"] if halves else []),
            *([FAST_MATH] if self.fast else []),
        )

    def unavailable(self, device: torch.device) -> str | None:
        """Return why this form cannot run on a device, None when it can."""
        if device.type == "cuda":
            from kernels import launch

            return launch.missing()
        if self.fast:
            return f"{FAST_MATH} is an option of the GPU's compiler"
        return None if host.compiler() else "g++ is not installed: no CPU run of CUDA sources"

    def constants(self) -> bytes:
        """Return mean, std, 1 / std, matrix, weight and bias as the kernel takes them."""
        mean, std, matrix = self.transform.arrays()
        if self.folded_in == "float32":
            single = [a.astype(np.float32) for a in (mean, std, matrix)]
            folded = [single[2] / single[1][:, None], -(single[0] / single[1]) @ single[2]]
        else:
            folded = [np.array(self.transform.coefficients)]
        parts = [a.ravel().astype(np.float32) for a in (mean, std, 1 / std, matrix, *folded)]
        return np.concatenate(parts).tobytes()

    def __call__(self, x: torch.Tensor, out: torch.Tensor) -> None:
        """Compute contiguous images [..., 3] into `out`, on the current stream of a GPU."""
        constants = _constants(self)
        pixels = x.numel() // _C
        function = _function(self, x.get_device(), len(constants))
        function(-(-pixels // THREADS), x.data_ptr(), out.data_ptr(), pixels, constants)

    def bound(self, x: torch.Tensor) -> torch.Tensor:
        """Return the error that the roundings of this form allow, in float64.

        As tolerance.py derives it for fp32; half arithmetic makes the same roundings by its unit.
        """
        case = Case(_KERNEL, "float32", tuple(x.shape), parameters={"transform": self.preset})
        allowed = error_bound(case, (x,)) * (_FAST_DIVISION if self.fast else 1.0)
        if self.target == torch.float32:
            return allowed
        info = torch.finfo(self.target)
        unit, least = info.eps / 2, info.tiny * info.eps / 2
        if self.half_arithmetic:
            allowed = allowed * (unit / UNIT) + (_C + 5) * least
        return allowed + unit * (self.expected(x).abs() + allowed) + least

    def expected(self, x: torch.Tensor) -> torch.Tensor:
        """Return the float64 result for these inputs."""
        return reference(x, transform=self.transform)

    def magnitude(self, x: torch.Tensor) -> torch.Tensor:
        """Return sum over c of (|x| + |mean|) / |std| * |matrix|, what errors are relative to."""
        mean, std, matrix = (
            torch.from_numpy(a).abs().to(x.device) for a in self.transform.arrays()
        )
        return ((x.double().abs() + mean) / std) @ matrix

    def workload(self, shape: tuple[int, ...], device: torch.device) -> Workload:
        """Return this form as a workload on random images [..., 3]."""
        elements = int(np.prod(shape))
        named = {} if self.source != torch.uint8 else {"dtype": _told(self.target)}

        def make_inputs(seed: int) -> Inputs:
            generator = torch.Generator(device=device).manual_seed(seed)
            return (images(shape, self.source, generator),)

        return Workload(
            kernel=_KERNEL,
            implementation=self.name,
            launch=lambda inputs, out: self(inputs[0], out),
            make_inputs=make_inputs,
            reference=lambda inputs: self.expected(inputs[0]),
            output_shape=shape,
            output_dtype=self.target,
            bytes_moved=elements * (self.source.itemsize + self.target.itemsize),
            flop=2 * _D * elements,
            bound=lambda inputs: self.bound(inputs[0]),
            dtype=_told(self.source),
            shape=shape,
            parameters={"transform": self.preset, **named},
            fingerprint=_fingerprint(self, device),
            source_file=f"perftests/studies/{SOURCE.name}",
        )


def images(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Return random images: every byte value, or [0, 1)."""
    x = torch.rand(shape, generator=generator, device=generator.device)
    return (x * 256).to(dtype) if dtype == torch.uint8 else x.to(dtype)


def _told(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _constants(form: Form) -> bytes:
    return form.constants()


@cache
def _function(form: Form, device_index: int, size: int) -> Function:
    layout = f"PPq{struct.calcsize('f') * (size // 4)}s"
    if device_index < 0:
        return host.library(SOURCE, form.options).function(form.kernel, layout, THREADS)
    from kernels import launch

    module = launch.module(SOURCE, device_index, form.options)
    return module.function(form.kernel, layout, THREADS)


def _fingerprint(form: Form, device: torch.device) -> str | None:
    if device.type != "cuda":
        return None
    from kernels import launch

    cubin: Any = launch.module(SOURCE, launch.index_of(device), form.options).cubin
    return f"{cubin.fingerprint}"
