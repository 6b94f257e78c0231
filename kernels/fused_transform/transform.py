"""What happens to a pixel: mean, standard deviation and colour matrix, checked and folded once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.cases import Scalar
from kernels.implementation import Implementation

# The constants travel as kernel parameters, which CUDA before 12.1 limits to 4 KiB a launch.
MAX_COEFFICIENTS = 1000
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Transform:
    """y[d] = sum over c of (x[c] - mean[c]) / std[c] * matrix[c][d], for C channels in and D out.

    `matrix` has C rows of D numbers: row c is what input channel c gives to each output. `mean` and
    `std` are in the units of x, so for bytes those of [0, 1] images times 255. `Transform.of` takes
    any sequences and checks them.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]

    @classmethod
    def of(
        cls, mean: Iterable[float], std: Iterable[float], matrix: Iterable[Iterable[float]]
    ) -> "Transform":
        """Return the transform of plain numbers, NumPy arrays or CPU tensors.

        Raises ValueError when sizes differ, a number is not finite or a std is 0.
        """
        made = cls(
            tuple(float(v) for v in mean),
            tuple(float(v) for v in std),
            tuple(tuple(float(v) for v in row) for row in matrix),
        )
        made._check()
        return made

    def _check(self) -> None:
        rows, columns = len(self.matrix), {len(row) for row in self.matrix}
        if not len(self.mean) == len(self.std) == rows or len(columns) != 1 or columns == {0}:
            raise ValueError(
                f"fused_transform: {len(self.mean)} means, {len(self.std)} stds and a matrix with "
                f"rows of {[len(row) for row in self.matrix]}; expected C means, C stds and C rows "
                "of D numbers"
            )
        for name, values in (
            ("mean", self.mean),
            ("std", self.std),
            ("matrix", sum(self.matrix, ())),
        ):
            if not all(map(math.isfinite, values)):
                raise ValueError(
                    f"fused_transform: {name} is {list(values)}; expected finite numbers"
                )
        if 0.0 in self.std:
            raise ValueError(
                f"fused_transform: std is {list(self.std)}; expected no 0, which divides by zero "
                "(a constant channel has no scale: use 1)"
            )
        if (self.channels_in + 1) * self.channels_out > MAX_COEFFICIENTS:
            raise ValueError(
                f"fused_transform: {self.channels_in} to {self.channels_out} channels need "
                f"{(self.channels_in + 1) * self.channels_out} coefficients; at most "
                f"{MAX_COEFFICIENTS} fit a launch: use a matrix product"
            )
        with np.errstate(over="ignore"):
            folded = np.abs(np.asarray(self.coefficients))
        if not folded.max() < np.inf:
            raise ValueError(
                f"fused_transform: matrix / std is beyond fp32 with std {list(self.std)}; "
                "expected a larger std or a smaller matrix"
            )

    @property
    def channels_in(self) -> int:
        """C, the channels of a pixel of x."""
        return len(self.mean)

    @property
    def channels_out(self) -> int:
        """D, the channels of a pixel of y."""
        return len(self.matrix[0])

    def arrays(self) -> tuple[Array, Array, Array]:
        """Return mean [C], std [C] and matrix [C, D]."""
        return np.array(self.mean), np.array(self.std), np.array(self.matrix)

    @cached_property
    def coefficients(self) -> tuple[float, ...]:
        """Weight [C][D], then bias [D], of y = x @ weight + bias: folded in float64, then fp32."""
        mean, std, matrix = self.arrays()
        folded = np.concatenate([(matrix / std[:, None]).ravel(), -(mean / std) @ matrix])
        with np.errstate(over="ignore", under="ignore"):
            return tuple(folded.astype(np.float32).tolist())

    @cached_property
    def _text(self) -> str:
        rows = (self.mean, self.std, *self.matrix)
        return "; ".join(" ".join(repr(v) for v in row) for row in rows)

    def __str__(self) -> str:
        """Return text that `parse` reads back: mean; std; rows of the matrix."""
        return self._text

    @cached_property
    def _hash(self) -> int:
        return hash((self.mean, self.std, self.matrix))

    def __hash__(self) -> int:
        """Return the hash, computed once: a call looks its transform up."""
        return self._hash


def _scaled(transform: Transform, scale: float) -> Transform:
    return Transform.of(
        [m * scale for m in transform.mean], [s * scale for s in transform.std], transform.matrix
    )


_IMAGENET_YCBCR = Transform.of(
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
    # BT.601 luma and colour differences, full range: a column an output.
    ((0.299, -0.168736, 0.5), (0.587, -0.331264, -0.418688), (0.114, 0.5, -0.081312)),
)
PRESETS = MappingProxyType({
    "imagenet_ycbcr": _IMAGENET_YCBCR,
    "imagenet_ycbcr_255": _scaled(_IMAGENET_YCBCR, 255.0),
    # BT.601: what a television makes of red, green and blue.
    "grey_bt601": Transform.of((0, 0, 0), (1, 1, 1), ((0.299,), (0.587,), (0.114,))),
    # Brightness, greenness and a third index of four satellite bands (Horne, 2003, for IKONOS).
    "four_bands": Transform.of(
        (0.12, 0.13, 0.11, 0.31),
        (0.05, 0.06, 0.07, 0.11),
        (
            (0.326, -0.311, -0.612), (0.509, -0.356, -0.312),
            (0.560, -0.325, 0.722), (0.567, 0.819, -0.081),
        ),
    ),
})  # fmt: skip
DEFAULT = "imagenet_ycbcr"


def _numbers(text: str) -> Sequence[float]:
    return [float(word) for word in text.replace(",", " ").split()]


@cache
def parse(text: str) -> Transform:
    """Return the preset of that name, or the transform of "mean; std; matrix rows" as of str().

    Raises ValueError naming the presets when the text is neither, or what is wrong with its
    numbers.
    """
    if text in PRESETS:
        return PRESETS[text]
    try:
        mean, std, *matrix = map(_numbers, text.split(";"))
    except ValueError:
        raise ValueError(
            f"fused_transform: no transform {text!r}; expected one of {', '.join(PRESETS)}, "
            "a Transform, or 'mean; std; matrix rows' as numbers"
        ) from None
    return Transform.of(mean, std, matrix)


def transform_of(given: "Transform | str | None") -> Transform:
    """Return the transform that a call's parameter names; None is the default preset."""
    if isinstance(given, Transform):
        return given
    return parse(DEFAULT if given is None else given)


class TakesTransform(Implementation):
    """An implementation whose `transform` may be a Transform too: its text is what is passed on."""

    def _complete(self, parameters: Mapping[str, Any]) -> dict[str, Scalar]:
        return super()._complete(_as_text(parameters))

    def _traced(self, inputs: Sequence[Any], out: Any, parameters: Mapping[str, Any]) -> Any:
        return super()._traced(inputs, out, _as_text(parameters))


def _as_text(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    given = parameters.get("transform")
    return {**parameters, "transform": str(given)} if isinstance(given, Transform) else parameters
