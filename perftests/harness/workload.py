"""Workload: everything the harness must know to time one callable and to trust the time.

Only torch tensors pass through here. The callable may come from any library, as long as it works
on torch's current stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from perftests.harness.clock import perf_counter
from perftests.harness.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import torch

Scalar: TypeAlias = str | int | float | bool
Inputs: TypeAlias = "tuple[torch.Tensor, ...]"
Launch: TypeAlias = "Callable[[Inputs, torch.Tensor], object]"
Bound: TypeAlias = "float | torch.Tensor | Callable[[Inputs], float | torch.Tensor]"
FirstCall: TypeAlias = "Callable[[Callable[[], object]], Mapping[str, float | str]]"
_EMPTY: Mapping[str, Scalar] = MappingProxyType({})


FIRST_CALL = ("compile_s", "load_s", "launch_s")
_UNTOLD = "the workload does not split its first call"
_LAUNCHED = "this process had launched it before"


def _whole(call: Callable[[], object]) -> Mapping[str, float | str]:
    began = perf_counter()
    call()
    return {"launch_s": perf_counter() - began}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One callable with its inputs, its reference and what it moves.

    `launch(inputs, out)` writes `out` on the current stream, without allocating and without
    waiting. `make_inputs(seed)` gives fresh contiguous tensors, other values for another seed,
    drawn as `distribution` says in words.
    `reference(inputs)` gives the expected output in float64. `bound` is the absolute error allowed,
    a number, a tensor or a function of the inputs; 0 demands the correctly rounded reference.

    `input_offsets` and `output_offset` are in elements from a 16-byte boundary: the harness puts
    the tensors there, between guard zones. `specials` plants NaN, infinities, zeros of both signs
    and a subnormal among floating-point inputs for the checks; `zero_sign` demands of a zero the
    reference's sign. `small` gives the same workload at a size fit for a correctness run alone.
    `first_call(call)` makes the first call of a case, `call()`, which waits for the device, and
    returns for `compile_s`, `load_s` and `launch_s` seconds, or in words why there are none, such
    as that the code was at hand. Without it the whole call is `launch_s`. Workloads with an equal
    `inputs_key` have the same inputs, reference and bound for a seed: these are then made once for
    consecutive workloads.

    `allocates` says why a call allocates by design, as a peer may. Its time is then reported with a
    warning; an allocation that nobody declared is refused.

    Units: `bytes_moved` in bytes, `flop` in floating-point operations, both compulsory.
    """

    kernel: str
    implementation: str
    launch: Launch
    make_inputs: Callable[[int], Inputs]
    reference: Callable[[Inputs], torch.Tensor]
    output_shape: tuple[int, ...]
    output_dtype: torch.dtype
    bytes_moved: int
    flop: int = 0
    bound: Bound = 0.0
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    alignment: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: _EMPTY)
    version: int = 1
    input_offsets: tuple[int, ...] = ()
    output_offset: int = 0
    specials: bool = True
    zero_sign: bool = False
    fingerprint: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    small: Callable[[], Workload] | None = None
    first_call: FirstCall | None = None
    inputs_key: Hashable = None
    allocates: str | None = None
    distribution: str | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without running."""
        if self.bytes_moved <= 0:
            raise SettingError(
                f"cannot describe {self.kernel}/{self.implementation}: bytes_moved is "
                f"{self.bytes_moved}; give the compulsory bytes, each input read once and each "
                "output written once"
            )
        if min((self.output_offset, *self.input_offsets)) < 0:
            raise SettingError(
                f"cannot describe {self.kernel}/{self.implementation}: offsets are "
                f"{self.input_offsets} and {self.output_offset}; give elements >= 0"
            )
        if not isinstance(self.distribution, str | None):
            raise SettingError(
                f"cannot describe {self.kernel}/{self.implementation}: distribution is "
                f"{self.distribution!r}; say in words what make_inputs draws"
            )
        if self.zero_sign and self.output_dtype.is_complex:
            raise SettingError(
                f"cannot describe {self.kernel}/{self.implementation}: zero_sign is for real "
                f"outputs, and {self.output_dtype} is complex; leave it out"
            )

    @property
    def label(self) -> str:
        """Short name for people, such as `relu/mine float32 [1048576]`."""
        shape, alignment = "x".join(map(str, self.identity_shape)), self.identity_alignment
        odd = "" if alignment == "aligned" else f" {alignment}"
        return f"{self.kernel}/{self.implementation} {self.identity_dtype} [{shape}]{odd}"

    @property
    def identity_dtype(self) -> str:
        """The dtype that names the case: `dtype` where given, else the output's."""
        return self.dtype or str(self.output_dtype).removeprefix("torch.")

    @property
    def identity_alignment(self) -> str:
        """The offsets' name, "aligned" when all are zero: `alignment` where given."""
        if self.alignment:
            return self.alignment
        if not any((*self.input_offsets, self.output_offset)):
            return "aligned"
        ins = ",".join(str(offset) for offset in self.input_offsets) or "0"
        return f"in+{ins} out+{self.output_offset}"

    @property
    def identity_shape(self) -> tuple[int, ...]:
        """The shape that names the case: `shape` where given, else the output's."""
        return self.output_shape if self.shape is None else self.shape

    @property
    def launched_key(self) -> Hashable:
        """What the code of a launch may hang on: all that names the case but its cache mode."""
        return (
            *(self.kernel, self.implementation, self.identity_dtype),
            *(self.identity_shape, self.identity_alignment, self.version),
            *sorted(self.parameters.items()),
        )

    def split(
        self, call: Callable[[], object], *, again: bool = False
    ) -> tuple[dict[str, float | None], dict[str, str]]:
        """Make the first call; return the seconds of its parts, and why any of them is missing.

        `again` says that this process has launched the case before, in another cache mode: then the
        launch is a first one only where something was compiled or loaded for it.
        """
        told = (self.first_call or _whole)(call)
        seconds: dict[str, float | None] = {}
        reasons = {}
        for name in FIRST_CALL:
            value = told.get(name, _UNTOLD)
            seconds[name] = None if isinstance(value, str) else value
            if isinstance(value, str):
                reasons[name] = value
        if again and seconds["compile_s"] is None and seconds["load_s"] is None:
            seconds["launch_s"], reasons["launch_s"] = None, _LAUNCHED
        return seconds, reasons

    def error_bound(self, inputs: Inputs) -> float | torch.Tensor:
        """Return the absolute error allowed for these inputs."""
        return self.bound(inputs) if callable(self.bound) else self.bound
